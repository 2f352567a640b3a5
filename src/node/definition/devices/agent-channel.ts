/**
 * The line to the guest agent: a port of a virtio-serial controller (ADR 15). A guest that starts for the first time has
 * both; so has the port one that comes from another manager with such a controller. Later it has the port where the record
 * has it, and under its number; one that was recorded without gets it only where it asks, because hardware neither appears
 * by itself nor vanishes.
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

export interface ChannelPast {
  readonly rows: readonly LearnedDevice[];
  /** Those that the record passes back. */
  readonly others: readonly Unplaced<OtherDevice>[];
  /** It comes from another manager, and has not run here yet. */
  readonly imported: boolean;
  /** It has what the rows say and nothing else. */
  readonly complete?: boolean;
}

export function defineAgentChannel(
  vmi: Stored<VirtualMachineInstance>,
  { rows, others, imported, complete = false }: ChannelPast,
): DefinedChannel {
  const found = others.find(({ device }) => device.driver === DRIVER)?.device;
  const row = rows.find(({ id }) => id === AGENT_CHANNEL_ID);
  if (complete && row === undefined) return { controllers: [], channels: [] };
  const hadIt = found !== undefined && (row !== undefined || imported);
  if (!hadIt && !complete && rows.length > 0 && !asksForAgent(vmi)) return { controllers: [], channels: [] };
  const controller = found ?? CONTROLLER;
  const address = portOn(controller.id, portIn(row) ?? FIRST_PORT);
  return {
    controllers: found === undefined ? [{ device: CONTROLLER, field: 'spec.domain.devices' }] : [],
    channels: [{ type: 'agent-channel', id: AGENT_CHANNEL_ID, controller: controller.id, address }],
  };
}

/** Port 0 is for consoles. */
const FIRST_PORT = 1;
/** What a controller has unless told otherwise, less the first. */
const LAST_PORT = 30;

/** In libvirt's shape, with the number that the controller has in its name. */
function portOn(controller: string, port: number): DeviceAddress {
  const number = /\d*$/.exec(controller)?.[0] || '0';
  return { type: 'virtio-serial', controller: number, bus: '0', port: String(port) };
}

function portIn(row: LearnedDevice | undefined): number | undefined {
  const { type, port = '' } = row?.address ?? {};
  const number = type === 'virtio-serial' && /^\d{1,2}$/.test(port) ? Number(port) : 0;
  return number >= FIRST_PORT && number <= LAST_PORT ? number : undefined;
}
