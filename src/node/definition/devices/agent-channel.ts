/**
 * Defines the guest agent channel: a port of a virtio-serial controller (ADR 15). A guest gets both on its first start;
 * an imported guest that has such a controller gets the port. Later the guest has the port if the record has it, with
 * its recorded number. A guest that was recorded without a port gets one only if its spec asks for it, because hardware
 * neither appears nor vanishes unasked.
 */
import { asksForAgent } from '#api/devices/agent-channel.ts';
import type { DeviceAddress, LearnedDevice } from '#api/devices/learned-device.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';
import type { UnplacedDevice } from '#node/definition/addresses/unplaced-device.ts';
import type { AgentChannel, OtherDevice } from '#node/hardware/domain-definition.ts';

const DRIVER = 'virtio-serial-pci';
export const AGENT_CHANNEL_ID = 'agent0';

const CONTROLLER: OtherDevice = {
  type: 'other',
  id: 'virtio-serial0',
  driver: DRIVER,
  row: { type: 'controller', device: 'virtio-serial', managed: false },
};

interface DefinedChannel {
  /** The new controller, if the record has none. */
  readonly controllers: readonly UnplacedDevice<OtherDevice>[];
  readonly channels: readonly AgentChannel[];
}

interface ChannelHistory {
  readonly rows: readonly LearnedDevice[];
  /** Devices from the record. */
  readonly others: readonly UnplacedDevice<OtherDevice>[];
  /** True if the VM comes from another manager and has not run here yet. */
  readonly imported: boolean;
  /** True if the guest has exactly the devices of the rows. */
  readonly complete?: boolean;
}

export function defineAgentChannel(
  vmi: Stored<VirtualMachineInstance>,
  { rows, others, imported, complete = false }: ChannelHistory,
): DefinedChannel {
  const found = others.find(({ device }) => device.driver === DRIVER)?.device;
  const row = rows.find(({ id }) => id === AGENT_CHANNEL_ID);
  if (complete && row === undefined) return { controllers: [], channels: [] };
  const hadChannel = found !== undefined && (row !== undefined || imported);
  if (!hadChannel && !complete && rows.length > 0 && !asksForAgent(vmi)) return { controllers: [], channels: [] };
  const controller = found ?? CONTROLLER;
  const address = channelAddress(controller.id, recordedPort(row) ?? FIRST_PORT);
  return {
    controllers: found === undefined ? [{ device: CONTROLLER, field: 'spec.domain.devices' }] : [],
    channels: [{ type: 'agent-channel', id: AGENT_CHANNEL_ID, controller: controller.id, address }],
  };
}

/** Port 0 is reserved for consoles. */
const FIRST_PORT = 1;
/** A controller has 31 ports by default. */
const LAST_PORT = 30;

/** Returns the address in libvirt's form; the number of the controller comes from its id. */
function channelAddress(controller: string, port: number): DeviceAddress {
  const number = /\d*$/.exec(controller)?.[0] || '0';
  return { type: 'virtio-serial', controller: number, bus: '0', port: String(port) };
}

function recordedPort(row: LearnedDevice | undefined): number | undefined {
  const { type, port = '' } = row?.address ?? {};
  const number = type === 'virtio-serial' && /^\d{1,2}$/.test(port) ? Number(port) : 0;
  return number >= FIRST_PORT && number <= LAST_PORT ? number : undefined;
}
