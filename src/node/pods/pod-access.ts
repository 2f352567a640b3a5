/**
 * The access of our own program to the API, in pods: a token of the pod's service account, bound to the pod, in a
 * directory that only we may enter. There while the process runs, and renewed before it ends.
 *
 *   <node-dir>/pods/<uid of the pod>/token, ca.crt
 */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Writer } from '#client/client.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import { endLeftPrograms } from '#node/pods/left-programs.ts';
import { ACCESS_VARIABLES } from '#node/pods/program.ts';
import { TOKENS, type TokenRequest } from '#node/pods/pod-token.ts';

export interface ProgramAccess {
  /** Ours alone; made when it is needed. */
  readonly dir: string;
  /** Where the API is: `https://host:port`. */
  readonly server: string;
  /** PEM; absent means the system's authorities. */
  readonly certificateAuthority?: string | undefined;
}

export interface PodAccessParts extends ProgramAccess {
  /** Acts as the node. */
  readonly client: Pick<Writer, 'create'>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

const LIFETIME_SECONDS = 3600;
/** When it is this far into its life a token is renewed, as by a kubelet. */
const RENEW_AT = 0.8;
/** Uids come from the API server; none of them leads out of our directory. */
const UID = /^[A-Za-z0-9-]{1,64}$/;

export class PodAccess {
  readonly #parts: PodAccessParts;
  /** When to renew, by the uid of the pod: those that have a directory. */
  readonly #renewAtMs = new Map<string, number>();

  constructor(parts: PodAccessParts) {
    this.#parts = parts;
  }

  /** Before anything is started: ends what an agent before us left running, whose tokens go. */
  async clear(): Promise<void> {
    const { dir } = this.#parts;
    await endLeftPrograms(dir);
    await rm(dir, { recursive: true, force: true });
  }

  /** Makes the token of a pod that is about to start. The result is what its process is told. Rejects where the API refuses. */
  async open(pod: Stored<Pod>): Promise<Record<string, string>> {
    const { server, certificateAuthority } = this.#parts;
    const { uid } = pod.metadata;
    const dir = this.#dirOf(uid);
    this.#renewAtMs.set(uid, 0);
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const caFile = join(dir, 'ca.crt');
    if (certificateAuthority !== undefined) await writeWhole(caFile, certificateAuthority);
    await this.#write(pod);
    return {
      [ACCESS_VARIABLES.server]: server,
      [ACCESS_VARIABLES.tokenFile]: join(dir, 'token'),
      ...(certificateAuthority !== undefined && { [ACCESS_VARIABLES.caFile]: caFile }),
    };
  }

  /** Renews what is due. The result is when to look again; undefined where the pod has no token. */
  async renew(pod: Stored<Pod>): Promise<number | undefined> {
    const { clock } = this.#parts;
    const { uid } = pod.metadata;
    const atMs = this.#renewAtMs.get(uid);
    if (atMs === undefined) return undefined;
    if (clock.now() >= atMs) await this.#write(pod);
    const nextMs = this.#renewAtMs.get(uid);
    return nextMs === undefined ? undefined : Math.max(0, nextMs - clock.now());
  }

  /** The process has ended. Nothing is left; once more changes nothing. */
  async close(uid: string): Promise<void> {
    if (this.#renewAtMs.delete(uid)) await rm(this.#dirOf(uid), { recursive: true, force: true });
  }

  async #write(pod: Stored<Pod>): Promise<void> {
    const { client, clock, signal } = this.#parts;
    const { name, namespace, uid } = pod.metadata;
    const account = pod.spec.serviceAccountName || 'default';
    const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name, uid } as const;
    const request: TokenRequest = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata: { name: account, namespace },
      spec: { expirationSeconds: LIFETIME_SECONDS, boundObjectRef },
    };
    const askedAtMs = clock.now();
    const { status } = await client.create(TOKENS, request, { subresource: 'token', signal });
    if (!status?.token) throw new Error(`Cannot give pod ${namespace}/${name} a token: the answer has none`);
    await writeWhole(join(this.#dirOf(uid), 'token'), status.token);
    // A server may give less than was asked for, and its clock may be another.
    const endsAtMs = Date.parse(status.expirationTimestamp ?? '');
    const lifeMs = Number.isNaN(endsAtMs) ? LIFETIME_SECONDS * 1000 : endsAtMs - askedAtMs;
    const waitMs = Math.max(MIN_RENEW_MS, Math.min(lifeMs, LIFETIME_SECONDS * 1000) * RENEW_AT);
    // Not where it was closed meanwhile.
    if (this.#renewAtMs.has(uid)) this.#renewAtMs.set(uid, askedAtMs + waitMs);
  }

  #dirOf(uid: string): string {
    if (!UID.test(uid)) throw new Error(`Cannot give a pod access: its uid is ${JSON.stringify(uid)}`);
    return join(this.#parts.dir, uid);
  }
}

/** However short a token lives, it is not asked for all the time. */
const MIN_RENEW_MS = 10_000;

/** Readers find the old text or the new one. */
async function writeWhole(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text, { mode: 0o600 });
  await rename(`${path}.new`, path);
}

/** Whether somebody wants the pod to have a token for the API: it is mounted where programs look for it. */
export function wantsToken({ spec }: Pod): boolean {
  const mounted = new Set((spec.containers[0]?.volumeMounts ?? []).map(({ name }) => name));
  return (spec.volumes ?? []).some(({ name, projected }) => {
    const { sources = [] } = (projected ?? {}) as { sources?: readonly ProjectedSource[] };
    return mounted.has(name) && sources.some(({ serviceAccountToken: one }) => one !== undefined && !one.audience);
  });
}

interface ProjectedSource {
  readonly serviceAccountToken?: { readonly audience?: string };
}
