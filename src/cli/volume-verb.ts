/** What addvolume and removevolume share: their flags, and whom they ask. */
import type { ApiConnection } from '#cli/api-connection.ts';
import { dryRunFlag } from '#cli/dry-run.ts';
import { CommandError, switchFlag, textFlag } from '#cli/flags.ts';
import { messageOf } from '#cli/message-of.ts';
import { verbPath } from '#cli/verb-path.ts';

export const persistFlags = {
  persist: switchFlag({
    name: 'persist',
    help: 'if set, change the VM, so that the change survives a restart; otherwise change only the running instance',
  }),
  dryRun: dryRunFlag,
};

export const volumeNameFlag = (help: string) => textFlag({ name: 'volume-name', help }, 'string');

/** Throws CommandError, in cobra's words. */
export function requiredVolumeName(volumeName: string | undefined): string {
  if (volumeName === undefined) throw new CommandError('required flag(s) "volume-name" not set');
  return volumeName;
}

export interface VolumeVerb {
  readonly verb: 'addvolume' | 'removevolume';
  /** `error <doing> volume, ...`, and `submitted <said> volume request`. */
  readonly doing: 'adding' | 'removing';
  readonly said: 'add' | 'remove';
}

/** The line that tells of success. Throws CommandError. */
export async function askForVolume(
  api: ApiConnection,
  { verb, doing, said }: VolumeVerb,
  { name, volumeName, persist }: { readonly name: string; readonly volumeName: string; readonly persist: boolean },
  body: object,
): Promise<string> {
  const kind = persist ? 'virtualmachines' : 'virtualmachineinstances';
  try {
    await api.put(verbPath(kind, api.namespace, name, verb), body);
  } catch (cause) {
    throw new CommandError(`error ${doing} volume, ${messageOf(cause)}`, { cause });
  }
  return `Successfully submitted ${said} volume request to VM ${name} for volume ${volumeName}`;
}
