/**
 * The line to the guest agent: a port of a virtio-serial controller (ADR 15). A guest that starts for the first time has
 * both. Later it has the port where it has such a controller; one that was recorded without gets it only where it asks,
 * because hardware neither appears by itself nor vanishes.
 */
import { asksForAgent } from '#api/agent-channel.ts';
import type { DeviceAddress, LearnedDevice } from '#api/learned-device.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';
import type { Unplaced } from '#node/definition/addresses/unplaced.ts';
import type { AgentChannel, OtherDevice } from '#node/definition/domain-definition.ts';

const DRIVER = 'virtio-serial-pci';
export const AGENT_CHANNEL_ID = 'agent0';

const CONTROLLER: OtherDevice = {
  type: 'other',
  id: 'virtio-serial0',
  driver: DRIVER,
  row: { type: 'controller', device: 'virtio-serial', managed: false },
};

export interface DefinedChannel {
  /** Where the guest has none of its record. */
  readonly controllers: readonly Unplaced<OtherDevice>[];
  readonly channels: readonly AgentChannel[];
}

/** `others` are those that the record passes back. */
export function defineAgentChannel(
  vmi: Stored<VirtualMachineInstance>,
  rows: readonly LearnedDevice[],
  others: readonly Unplaced<OtherDevice>[],
): DefinedChannel {
  const found = others.find(({ device }) => device.driver === DRIVER)?.device;
  if (found === undefined && rows.length > 0 && !asksForAgent(vmi)) return { controllers: [], channels: [] };
  const controller = found ?? CONTROLLER;
  return {
    controllers: found === undefined ? [{ device: CONTROLLER, field: 'spec.domain.devices' }] : [],
    channels: [
      { type: 'agent-channel', id: AGENT_CHANNEL_ID, controller: controller.id, address: portOne(controller.id) },
    ],
  };
}

/** In libvirt's shape, with the number that the controller has in its name. */
function portOne(controller: string): DeviceAddress {
  const number = /\d*$/.exec(controller)?.[0] || '0';
  return { type: 'virtio-serial', controller: number, bus: '0', port: '1' };
}
