/** All commands of virtctl, by name, and the flags that every one accepts. */
import { console } from '#cli/commands/access/console.ts';
import { portForward } from '#cli/commands/access/port-forward.ts';
import { scp } from '#cli/commands/access/scp.ts';
import { ssh } from '#cli/commands/access/ssh.ts';
import { completeCommand, completion } from '#cli/commands/completion/completion.ts';
import { create } from '#cli/commands/create/create-vm.ts';
import { expose } from '#cli/commands/expose/expose.ts';
import { expand } from '#cli/commands/expand.ts';
import { exportGroup } from '#cli/commands/export/export.ts';
import { guestInfoCommands } from '#cli/commands/guest-info.ts';
import { identity } from '#cli/commands/identity/identity.ts';
import { imageUpload } from '#cli/commands/image-upload/image-upload.ts';
import { importGroup } from '#cli/commands/import.ts';
import { migrate, migrateCancel } from '#cli/commands/migrate/migrate.ts';
import { powerCommands } from '#cli/commands/power.ts';
import { protect, unprotect } from '#cli/commands/protection/protect.ts';
import { clone } from '#cli/commands/snapshot/clone.ts';
import { restore } from '#cli/commands/snapshot/restore.ts';
import { snapshot } from '#cli/commands/snapshot/snapshot.ts';
import { state } from '#cli/commands/state.ts';
import { update } from '#cli/commands/update/machine-types.ts';
import { version } from '#cli/commands/version.ts';
import { vnc } from '#cli/commands/vnc/vnc.ts';
import { addVolume, removeVolume } from '#cli/commands/volumes.ts';
import type { VirtctlEntry } from '#cli/command.ts';
import { accessFlags } from '#cli/connection/cluster-access.ts';
import { integerFlag, switchFlag } from '#lib/command-line/flag.ts';

export const sharedFlags = {
  ...accessFlags,
  verbosity: integerFlag({ name: 'v', short: 'v', help: 'log level; 6 and higher also log requests' }, 0),
  help: switchFlag({ name: 'help', short: 'h', help: 'help for the command' }),
};

export const commands: readonly VirtctlEntry[] = [
  ...[
    addVolume,
    removeVolume,
    completion,
    console,
    create,
    expand,
    exportGroup,
    expose,
    identity,
    imageUpload,
    importGroup,
  ],
  ...[migrate, migrateCancel, portForward, protect, unprotect, scp, ssh, state, update, version, vnc],
  ...[clone, restore, snapshot],
  ...guestInfoCommands,
  ...powerCommands,
  completeCommand(() => ({ name: 'virtctl', commands, shared: sharedFlags })),
].toSorted((a, b) => (a.name < b.name ? -1 : 1));
