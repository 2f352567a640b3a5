/** virtctl import ...: virtual machines from OVF and libvirt formats. */
import type { CommandGroup } from '#cli/parsing/command.ts';
import { importLibvirt } from '#cli/commands/import-libvirt.ts';
import { importOvf } from '#cli/commands/import-ovf.ts';

export const importGroup: CommandGroup = {
  name: 'import',
  summary: 'Import virtual machines from OVF and libvirt formats.',
  commands: [importLibvirt, importOvf],
};
