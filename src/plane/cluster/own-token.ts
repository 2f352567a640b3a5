/** Renews the token file with which a controllers process starts, so that it never expires while the process runs. */
import { readFile } from 'node:fs/promises';
import { delay } from '#client/abort.ts';
import type { Client } from '#client/client.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { writePrivateFile } from '#lib/files/private-file.ts';
import { CONTROLLERS_ACCOUNT } from '#operator/objects/cluster.ts';
import { requestToken } from '#plane/cluster/account-clients.ts';

/** A process that was stopped for longer needs a new token (selfsame join). */
export const OWN_TOKEN_SECONDS = 30 * 24 * 60 * 60;
const RENEW_MS = 12 * 60 * 60 * 1000;
/** Time until the next attempt after a failure. */
const RETRY_MS = 60_000;

interface OwnTokenParts {
  readonly access: ClusterAccess;
  readonly client: Pick<Client, 'create'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Access to the file, for tests. */
  read?(path: string): Promise<string>;
  write?(path: string, text: string): Promise<void>;
}

const readText = (path: string) => readFile(path, 'utf8');

/**
 * Renews only tokens of `selfsame join`: in a pod the kubelet renews them, and tokens of other accounts are left alone.
 */
export async function keepOwnToken(
  { access, client, clock, log, read = readText, write = writePrivateFile }: OwnTokenParts,
  { signal }: AbortController,
): Promise<void> {
  const { tokenFile } = access;
  if (tokenFile === undefined || tokenFile.startsWith('/var/run/secrets/')) return;
  while (!signal.aborted) {
    let waitMs = RETRY_MS;
    try {
      if (accountOfToken(await read(tokenFile)) !== CONTROLLERS_ACCOUNT) return;
      const { token, expiresAtMs } = await requestToken(client, CONTROLLERS_ACCOUNT, {
        seconds: OWN_TOKEN_SECONDS,
        clock,
      });
      await write(tokenFile, token);
      // An API server may return a shorter lifetime than requested.
      waitMs = Math.min(RENEW_MS, (expiresAtMs - clock.now()) / 2);
    } catch (err) {
      log.warn({ err, tokenFile }, 'Cannot renew the token of this process; retrying later');
    }
    await delay(clock, Math.max(RETRY_MS, waitMs), { signal });
  }
}

/** Returns the account of a token, or undefined if the token does not name one. */
function accountOfToken(token: string): string | undefined {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    const { sub } = claims as { readonly sub?: unknown };
    return typeof sub === 'string' ? sub.split(':').at(-1) : undefined;
  } catch {
    return undefined;
  }
}
