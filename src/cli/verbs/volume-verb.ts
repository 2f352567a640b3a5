/** Shared by addvolume and removevolume: the flags and the request. */
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { dryRunFlag } from '#cli/parsing/dry-run.ts';
import { CommandError, switchFlag, textFlag } from '#cli/parsing/flags.ts';
import { errorMessage } from '#lib/error-message.ts';
import { verbPath } from '#cli/connection/verb-path.ts';

export const persistFlags = {
  persist: switchFlag({
    name: 'persist',
    help: 'if set, change the VM, so that the change survives a restart; otherwise change only the running instance',
  }),
  dryRun: dryRunFlag,
};

export const volumeNameFlag = (help: string) => textFlag({ name: 'volume-name', help }, 'string');

/** Throws CommandError with cobra's message. */
export function requireVolumeName(volumeName: string | undefined): string {
  if (volumeName === undefined) throw new CommandError('required flag(s) "volume-name" not set');
  return volumeName;
}

export interface VolumeVerb {
  readonly verb: 'addvolume' | 'removevolume';
  /** Used in `error <gerund> volume, ...` and `submitted <word> volume request`. */
  readonly gerund: 'adding' | 'removing';
  readonly word: 'add' | 'remove';
}

/** Sends the request and returns the message of success. Throws CommandError. */
export async function sendVolumeVerb(
  api: ApiConnection,
  { verb, gerund, word }: VolumeVerb,
  { name, volumeName, persist }: { readonly name: string; readonly volumeName: string; readonly persist: boolean },
  body: object,
): Promise<string> {
  const kind = persist ? 'virtualmachines' : 'virtualmachineinstances';
  try {
    await api.put(verbPath(kind, api.namespace, name, verb), body);
  } catch (cause) {
    throw new CommandError(`error ${gerund} volume, ${errorMessage(cause)}`, { cause });
  }
  return `Successfully submitted ${word} volume request to VM ${name} for volume ${volumeName}`;
}
