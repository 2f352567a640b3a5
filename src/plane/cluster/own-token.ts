/** The token by which a controllers process starts: it renews it in its file, so that the file can be used for ever. */
import { readFile } from 'node:fs/promises';
import { delay } from '#client/abort.ts';
import type { Client } from '#client/client.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { writePrivateFile } from '#lib/private-file.ts';
import { CONTROLLERS_ACCOUNT } from '#operator/objects/cluster.ts';
import { requestToken } from '#plane/cluster/account-clients.ts';

/** A process that was away for longer must be given a new one (selfsame join). */
export const OWN_TOKEN_SECONDS = 30 * 24 * 60 * 60;
const RENEW_MS = 12 * 60 * 60 * 1000;
/** After a failure. */
const RETRY_MS = 60_000;

export interface OwnTokenParts {
  readonly access: ClusterAccess;
  readonly client: Pick<Client, 'create'>;
  readonly clock: Clock;
  readonly log: Log;
  /** The file. */
  read?(path: string): Promise<string>;
  write?(path: string, text: string): Promise<void>;
}

const readText = (path: string) => readFile(path, 'utf8');

/** Only where `selfsame join` made the file: in a pod the kubelet renews it, and a token of somebody else is theirs. */
export async function keepOwnToken(
  { access, client, clock, log, read = readText, write = writePrivateFile }: OwnTokenParts,
  { signal }: AbortController,
): Promise<void> {
  const { tokenFile } = access;
  if (tokenFile === undefined || tokenFile.startsWith('/var/run/secrets/')) return;
  while (!signal.aborted) {
    let waitMs = RETRY_MS;
    try {
      if (accountIn(await read(tokenFile)) !== CONTROLLERS_ACCOUNT) return;
      const { token, endsAtMs } = await requestToken(client, CONTROLLERS_ACCOUNT, {
        seconds: OWN_TOKEN_SECONDS,
        clock,
      });
      await write(tokenFile, token);
      // An API server may give less than it is asked for.
      waitMs = Math.min(RENEW_MS, (endsAtMs - clock.now()) / 2);
    } catch (err) {
      log.warn({ err, tokenFile }, 'Cannot renew the token of this process; trying again later');
    }
    await delay(clock, Math.max(RETRY_MS, waitMs), { signal });
  }
}

/** Whose token it is; undefined where it does not say. */
export function accountIn(token: string): string | undefined {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    const { sub } = claims as { readonly sub?: unknown };
    return typeof sub === 'string' ? sub.split(':').at(-1) : undefined;
  } catch {
    return undefined;
  }
}
