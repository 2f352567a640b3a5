/**
 * Which controllers processes there are: each keeps a Lease that says where it listens, and lets the API server know of all
 * that live (endpoints.ts). Who leaves takes itself out; who is gone without a word is taken out by the others when nobody
 * listens there any more, or when its Lease was not renewed for a while, by the clock of the one who looks.
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
  /** Unique; a name of Kubernetes. */
  readonly id: string;
  /** An IP address. */
  readonly address: string;
  readonly port: number;
}

export interface MembershipOptions {
  readonly client: Client;
  readonly member: Member;
  readonly clock: Clock;
  readonly log: Log;
}

export const leaseName = (id: string) => ({ namespace: SYSTEM_NAMESPACE, name: `selfsame-${MEMBER}-${id}` });

/** Says that this process lives. */
export async function renewMembership(
  { client, member, clock, log }: MembershipOptions,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  const options = { fieldManager: 'selfsame-controllers', force: true, signal };
  try {
    await client.apply(LEASES, leaseOf(member, clock.now()), options);
  } catch (err) {
    if (!signal.aborted) log.warn({ err }, 'Cannot say that this process lives; trying again');
  }
}

/** Keeps the Lease until the signal aborts, and removes it then. */
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
    if (!isApiError(error, 'NotFound')) log.warn({ err: error }, 'Cannot take this process out; the others will');
  });
}

function leaseOf({ id, address, port }: Member, nowMs: number): Lease {
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

/** Remembers when each was last seen to be renewed. */
export class Census {
  readonly #clock: Clock;
  readonly #seen = new Map<string, { readonly renewed: string; readonly atMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Who lives, and whose Leases can go. */
  async take(client: Pick<Client, 'list'>): Promise<{ alive: Member[]; dead: string[] }> {
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
