import { AGENT_PORT_NAME } from '#api/agent-channel.ts';
import type { AgentChannel } from '#node/definition/domain-definition.ts';
import { deviceArguments, optionText } from '#node/hypervisor/qemu/arguments/option-text.ts';
import type { QemuHost } from '#node/hypervisor/qemu/arguments/qemu-host.ts';

/** Port 0 is for consoles; the first that others may have is 1. */
export function agentChannelArguments({ id, controller }: AgentChannel, { agentSocket }: QemuHost): string[] {
  const chardev = `chr-${id}`;
  return [
    '-chardev',
    optionText('socket', { id: chardev, path: agentSocket, server: true, wait: false }),
    ...deviceArguments({ driver: 'virtserialport', id, bus: `${controller}.0`, nr: 1, chardev, name: AGENT_PORT_NAME }),
  ];
}
