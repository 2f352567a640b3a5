import { AGENT_PORT_NAME } from '#api/devices/agent-channel.ts';
import { invariant } from '#lib/invariant.ts';
import type { AgentChannel } from '#node/hardware/domain-definition.ts';
import { deviceArguments, optionText } from '#node/hypervisor/qemu/arguments/option-text.ts';
import type { QemuHost } from '#node/hypervisor/qemu/arguments/qemu-host.ts';

export function agentChannelArguments({ id, controller, address }: AgentChannel, { agentSocket }: QemuHost): string[] {
  const chardev = `chr-${id}`;
  const nr = Number(address?.['port']);
  invariant(nr >= 1, `${id} has a port`);
  return [
    '-chardev',
    optionText('socket', { id: chardev, path: agentSocket, server: true, wait: false }),
    ...deviceArguments({ driver: 'virtserialport', id, bus: `${controller}.0`, nr, chardev, name: AGENT_PORT_NAME }),
  ];
}
