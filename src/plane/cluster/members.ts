/**
 * The membership of controllers processes. Each keeps a Lease with its address, and publishes the endpoints of all live
 * members (endpoints.ts). A process that stops deletes its Lease. The others remove a process that was killed when its
 * port is closed, or when its Lease was not renewed for a while by their own clock.
 */
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import { delay } from '#client/abort.ts';
import type { Client } from '#client/client.ts';
import { isApiError } from '#kube/api-error.ts';
import { LEASES, type Lease } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { microTimestamp, type Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';

export const MEMBER_LABEL = 'selfsame.io/member';
const MEMBER = 'controllers';
const ADDRESS_ANNOTATION = 'selfsame.io/address';
const PORT_ANNOTATION = 'selfsame.io/port';
const RENEW_MS = 3000;
const LEASE_SECONDS = 15;

export interface Member {
  /** Unique, and a valid name in Kubernetes. */
  readonly id: string;
  /** IP address. */
  readonly address: string;
  readonly port: number;
}

interface MembershipOptions {
  readonly client: Client;
  readonly member: Member;
  readonly clock: Clock;
  readonly log: Log;
}

export const leaseName = (id: string) => ({ namespace: SYSTEM_NAMESPACE, name: `selfsame-${MEMBER}-${id}` });

/** Renews the Lease of this process. */
export async function renewMembership(
  { client, member, clock, log }: MembershipOptions,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  const options = { fieldManager: 'selfsame-controllers', force: true, signal };
  try {
    await client.apply(LEASES, buildLease(member, clock.now()), options);
  } catch (err) {
    if (!signal.aborted) log.warn({ err }, 'Cannot renew the Lease of this process; retrying');
  }
}

/** Renews the Lease until the signal aborts, and deletes it then. */
export async function keepMembership(
  options: MembershipOptions,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  const { client, member, clock, log } = options;
  const name = leaseName(member.id);
  while (!signal.aborted) {
    await delay(clock, RENEW_MS, { signal });
    if (!signal.aborted) await renewMembership(options, { signal });
  }
  await client.delete(LEASES, name).catch((error: unknown) => {
    if (!isApiError(error, 'NotFound'))
      log.warn({ err: error }, 'Cannot delete the Lease of this process; the other processes will');
  });
}

function buildLease({ id, address, port }: Member, nowMs: number): Lease {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      ...leaseName(id),
      labels: { [MEMBER_LABEL]: MEMBER },
      annotations: { [ADDRESS_ANNOTATION]: address, [PORT_ANNOTATION]: String(port) },
    },
    spec: { holderIdentity: id, leaseDurationSeconds: LEASE_SECONDS, renewTime: microTimestamp(nowMs) },
  };
}

/** Tracks when each Lease was last renewed, by the clock of this process. */
export class MemberTracker {
  readonly #clock: Clock;
  readonly #seen = new Map<string, { readonly renewed: string; readonly atMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns the live members, and the names of the Leases that can be deleted. */
  async list(client: Pick<Client, 'list'>): Promise<{ alive: Member[]; dead: string[] }> {
    const { items } = await client.list(LEASES, {
      namespace: SYSTEM_NAMESPACE,
      labelSelector: `${MEMBER_LABEL}=${MEMBER}`,
    });
    const now = this.#clock.elapsed();
    const names = new Set(items.map(({ metadata }) => metadata.name));
    for (const name of this.#seen.keys()) if (!names.has(name)) this.#seen.delete(name);
    const [alive, dead]: [Member[], string[]] = [[], []];
    for (const lease of items) {
      const renewed = lease.spec?.renewTime ?? '';
      const known = this.#seen.get(lease.metadata.name);
      const atMs = known?.renewed === renewed ? known.atMs : now;
      this.#seen.set(lease.metadata.name, { renewed, atMs });
      const member = memberOf(lease);
      if (member === undefined || now - atMs > LEASE_SECONDS * 1000) dead.push(lease.metadata.name);
      else alive.push(member);
    }
    return { alive, dead };
  }
}

function memberOf({ metadata, spec }: Stored<Lease>): Member | undefined {
  const { [ADDRESS_ANNOTATION]: address, [PORT_ANNOTATION]: port } = metadata.annotations ?? {};
  const id = spec?.holderIdentity;
  return address && port && id ? { id, address, port: Number(port) } : undefined;
}
