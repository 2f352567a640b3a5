/** Shared by virtctl state adopt and state release: the flags and the request. */
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { dryRunFlag } from '#cli/parsing/dry-run.ts';
import { CommandError, textFlag } from '#cli/parsing/flags.ts';
import { errorMessage } from '#lib/error-message.ts';
import { verbPath } from '#cli/connection/verb-path.ts';
import { readObject } from '#cli/connection/vm-objects.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '#kube/core-kinds.ts';

export const stateFlags = {
  claim: textFlag(
    { name: 'claim', help: 'The PersistentVolumeClaim that is marked as the state of the VM.', completes: 'pvc' },
    'string',
  ),
  uid: textFlag(
    { name: 'uid', help: 'The uid of the claim; looked up by default. A claim with another uid is refused.' },
    'string',
  ),
  dryRun: dryRunFlag,
};

export interface StateRequest {
  readonly verb: 'adoptstate' | 'releasestate';
  /** Used in `Error <gerund> PersistentVolumeClaim ...`. */
  readonly gerund: 'adopting' | 'releasing';
  readonly vm: string;
  readonly claim: string;
  readonly uid: string | undefined;
  readonly options: object;
}

/** Throws CommandError with cobra's message. */
export function requireClaim(claim: string | undefined): string {
  if (claim === undefined || claim === '') throw new CommandError('required flag(s) "claim" not set');
  return claim;
}

/** Sends the request. Throws CommandError if it is refused. */
export async function sendStateVerb(api: ApiConnection, request: StateRequest): Promise<void> {
  const { verb, gerund, vm, claim, options } = request;
  try {
    const uid = request.uid ?? (await uidOf(api, claim));
    const body = { claimName: claim, claimUID: uid, ...options };
    await api.put(verbPath('virtualmachines', api.namespace, vm, verb), body);
  } catch (cause) {
    throw new CommandError(`Error ${gerund} PersistentVolumeClaim ${claim}: ${errorMessage(cause)}`, { cause });
  }
}

async function uidOf(api: ApiConnection, name: string): Promise<string> {
  const { metadata } = await readObject(api, PERSISTENT_VOLUME_CLAIMS, name);
  return metadata.uid;
}
