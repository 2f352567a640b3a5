/** virtctl export ...: virtual machines in OVF and libvirt formats. */
import type { CommandGroup } from '#cli/parsing/command.ts';
import { exportLibvirt } from '#cli/commands/export-libvirt.ts';
import { exportOvf } from '#cli/commands/export-ovf.ts';

export const exportGroup: CommandGroup = {
  name: 'export',
  summary: 'Export virtual machines to OVF and libvirt formats.',
  commands: [exportLibvirt, exportOvf],
};
