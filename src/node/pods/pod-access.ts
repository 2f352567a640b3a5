/**
 * The access of programs in pods to the API: a token of the pod's service account, bound to the pod, in a private directory.
 * The token exists while the process runs, and is renewed before it expires.
 *
 *   <node-dir>/pods/<uid of the pod>/token, ca.crt
 */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Writer } from '#client/client.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import { killLeftoverPrograms } from '#node/pods/leftover-programs.ts';
import { ACCESS_VARIABLES } from '#node/pods/program.ts';
import { requestServiceAccountToken } from '#client/token-request.ts';

export interface ProgramAccess {
  /** Private directory of the agent; created on demand. */
  readonly dir: string;
  /** Address of the API: `https://host:port`. */
  readonly server: string;
  /** PEM; absent means the system's authorities. */
  readonly certificateAuthority?: string | undefined;
}

interface PodAccessParts extends ProgramAccess {
  /** Client with the credentials of the node. */
  readonly client: Pick<Writer, 'create'>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

const LIFETIME_SECONDS = 3600;
/** Fraction of its lifetime after which a token is renewed, as in the kubelet. */
const RENEW_FRACTION = 0.8;
/** Uids come from the API server. A valid one cannot lead out of the directory. */
const UID = /^[A-Za-z0-9-]{1,64}$/;

export class PodAccess {
  readonly #parts: PodAccessParts;
  /** Times of renewal by pod uid, for all pods with a directory. */
  readonly #renewAtMs = new Map<string, number>();

  constructor(parts: PodAccessParts) {
    this.#parts = parts;
  }

  /** Ends programs that an earlier agent left running, and removes their tokens. Call it before any program is started. */
  async clear(): Promise<void> {
    const { dir } = this.#parts;
    await killLeftoverPrograms(dir);
    await rm(dir, { recursive: true, force: true });
  }

  /** Creates the token of a pod and returns the variables for its process. Rejects if the API refuses. */
  async open(pod: Stored<Pod>): Promise<Record<string, string>> {
    const { server, certificateAuthority } = this.#parts;
    const { uid } = pod.metadata;
    const dir = this.#dirOf(uid);
    this.#renewAtMs.set(uid, 0);
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const caFile = join(dir, 'ca.crt');
    if (certificateAuthority !== undefined) await writeAtomically(caFile, certificateAuthority);
    await this.#write(pod);
    return {
      [ACCESS_VARIABLES.server]: server,
      [ACCESS_VARIABLES.tokenFile]: join(dir, 'token'),
      ...(certificateAuthority !== undefined && { [ACCESS_VARIABLES.caFile]: caFile }),
    };
  }

  /** Renews the token if it is due. Returns the time until the next renewal, or undefined if the pod has no token. */
  async renew(pod: Stored<Pod>): Promise<number | undefined> {
    const { clock } = this.#parts;
    const { uid } = pod.metadata;
    const atMs = this.#renewAtMs.get(uid);
    if (atMs === undefined) return undefined;
    if (clock.now() >= atMs) await this.#write(pod);
    const nextMs = this.#renewAtMs.get(uid);
    return nextMs === undefined ? undefined : Math.max(0, nextMs - clock.now());
  }

  /** Removes the token after the process has ended. May be repeated. */
  async close(uid: string): Promise<void> {
    if (this.#renewAtMs.delete(uid)) await rm(this.#dirOf(uid), { recursive: true, force: true });
  }

  async #write(pod: Stored<Pod>): Promise<void> {
    const { client, clock, signal } = this.#parts;
    const { name, namespace, uid } = pod.metadata;
    const account = pod.spec.serviceAccountName || 'default';
    const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name, uid } as const;
    const spec = { expirationSeconds: LIFETIME_SECONDS, boundObjectRef };
    const requestedAtMs = clock.now();
    const { token, expiresAtMs } = await requestServiceAccountToken(client, { namespace, name: account }, spec, {
      signal,
    });
    if (token === undefined)
      throw new Error(`Cannot get a token for pod "${namespace}/${name}": the API server returned none`);
    await writeAtomically(join(this.#dirOf(uid), 'token'), token);
    // The server may grant a shorter lifetime, and its clock may differ.
    const lifeMs = expiresAtMs === undefined ? LIFETIME_SECONDS * 1000 : expiresAtMs - requestedAtMs;
    const waitMs = Math.max(MIN_RENEW_MS, Math.min(lifeMs, LIFETIME_SECONDS * 1000) * RENEW_FRACTION);
    // The pod may have been closed meanwhile.
    if (this.#renewAtMs.has(uid)) this.#renewAtMs.set(uid, requestedAtMs + waitMs);
  }

  #dirOf(uid: string): string {
    if (!UID.test(uid)) throw new Error(`Cannot create a token directory: ${JSON.stringify(uid)} is not a pod uid`);
    return join(this.#parts.dir, uid);
  }
}

/** Limits the requests if tokens are very short-lived. */
const MIN_RENEW_MS = 10_000;

/** Writes a file so that readers see either the old or the new content. */
async function writeAtomically(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text, { mode: 0o600 });
  await rename(`${path}.new`, path);
}

/** Reports whether the pod mounts a token for the API server. */
export function requestsToken({ spec }: Pod): boolean {
  const mounted = new Set((spec.containers[0]?.volumeMounts ?? []).map(({ name }) => name));
  return (spec.volumes ?? []).some(({ name, projected }) => {
    const { sources = [] } = (projected ?? {}) as { sources?: readonly ProjectedSource[] };
    return (
      mounted.has(name) && sources.some(({ serviceAccountToken: token }) => token !== undefined && !token.audience)
    );
  });
}

interface ProjectedSource {
  readonly serviceAccountToken?: { readonly audience?: string };
}
