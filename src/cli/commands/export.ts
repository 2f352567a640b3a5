/** virtctl export ...: machines as files of others. */
import type { CommandGroup } from '#cli/command.ts';
import { exportLibvirt } from '#cli/commands/export-libvirt.ts';
import { exportOvf } from '#cli/commands/export-ovf.ts';

export const exportGroup: CommandGroup = {
  name: 'export',
  summary: 'Write virtual machines in the formats of others.',
  commands: [exportLibvirt, exportOvf],
};
