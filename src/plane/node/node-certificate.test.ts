import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import type { Client } from '#client/client.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { ApiError, notFound } from '#kube/api-error.ts';
import { silentLog } from '#lib/log.ts';
import { BACKDATED_MS, issue, makeAuthority } from '#lib/pki/authority.ts';
import { keepNodeCertificate, type NodeClientCertificate } from '#plane/node/node-certificate.ts';
import type { SigningRequest } from '#plane/node/signing-requests.ts';

const DAY = 24 * 3_600_000;
const LIFETIME_DAYS = 100;

/** The reaction of the cluster to a request. */
type Rule = 'signs' | 'waits' | 'denies' | 'forgets' | { readonly signsAfterDays: number };

interface Case {
  /** `count`: number of the request, from 1. */
  readonly rule: (count: number) => Rule;
  /** Length of the test. */
  readonly days: number;
  readonly requests: number;
  readonly renewed: number;
  /** Day on which an administrator renews the certificate. */
  readonly byHandAt?: number;
}

const cases: Record<string, Case> = {
  'requests nothing before half of the lifetime': { rule: () => 'signs', days: 49, requests: 0, renewed: 0 },
  'requests and installs the next one at half of the lifetime': {
    rule: () => 'signs',
    days: 52,
    requests: 1,
    renewed: 1,
  },
  'renews each certificate': { rule: () => 'signs', days: 260, requests: 5, renewed: 5 },
  'repeats a request that is not approved': { rule: () => 'waits', days: 51, requests: 12, renewed: 0 },
  'installs a certificate that is approved late': {
    rule: () => ({ signsAfterDays: 0.5 / 24 }),
    days: 52,
    requests: 1,
    renewed: 1,
  },
  'installs a certificate that is approved after several requests': {
    rule: (count) => (count < 5 ? 'waits' : 'signs'),
    days: 52,
    requests: 5,
    renewed: 1,
  },
  'repeats a request that is denied': {
    rule: (count) => (count < 3 ? 'denies' : 'signs'),
    days: 52,
    requests: 3,
    renewed: 1,
  },
  'repeats a request that the cluster has deleted': {
    rule: (count) => (count === 1 ? 'forgets' : 'signs'),
    days: 52,
    requests: 2,
    renewed: 1,
  },
  'keeps a certificate that an administrator has renewed': {
    rule: () => 'waits',
    byHandAt: 50.06,
    days: 90,
    requests: 1,
    renewed: 0,
  },
};

class Cluster {
  readonly clock = new FakeClock();
  readonly authority = makeAuthority({ commonName: 'ca' }, { nowMs: this.clock.now(), lifetimeMs: 3650 * DAY });
  readonly requests: { readonly atMs: number; readonly request: SigningRequest }[] = [];
  readonly #rule: (count: number) => Rule;

  constructor(rule: (count: number) => Rule) {
    this.#rule = rule;
  }

  certificate(): string {
    const options = { nowMs: this.clock.now() + BACKDATED_MS, lifetimeMs: LIFETIME_DAYS * DAY };
    return issue(this.authority, { subject: { commonName: 'system:node:n1' }, purpose: { kind: 'client' }, ...options })
      .certPem;
  }

  client(): Client {
    const create = async (_: unknown, request: SigningRequest) => {
      this.requests.push({ atMs: this.clock.now(), request });
      return { ...request, metadata: { name: String(this.requests.length) } };
    };
    const get = async (_: unknown, { name }: { name: string }) => {
      const { atMs, request } = this.requests[Number(name) - 1]!;
      const rule = this.#rule(Number(name));
      if (rule === 'forgets') throw notFound({ group: 'certificates.k8s.io', plural: 'x' }, name);
      if (rule === 'denies') return { ...request, status: { conditions: [{ type: 'Denied', message: 'no' }] } };
      const isLate = typeof rule === 'object' && this.clock.now() - atMs < rule.signsAfterDays * DAY;
      if (rule === 'waits' || isLate) return request;
      return { ...request, status: { certificate: Buffer.from(this.certificate()).toString('base64') } };
    };
    return { create, get } as unknown as Client;
  }
}

for (const [sentence, { rule, days, requests, renewed, byHandAt }] of Object.entries(cases)) {
  test(sentence, async () => {
    const cluster = new Cluster(rule);
    const { clock } = cluster;
    let current = cluster.certificate();
    const used: NodeClientCertificate[] = [];
    const stopping = new AbortController();
    const running = keepNodeCertificate(
      {
        client: cluster.client(),
        name: 'n1',
        current: () => current,
        async install(proof) {
          used.push(proof);
          current = proof.certPem;
        },
        clock,
        log: silentLog,
      },
      stopping,
    );
    await clock.advance((byHandAt ?? days) * DAY);
    if (byHandAt !== undefined) {
      current = cluster.certificate();
      await clock.advance((days - byHandAt) * DAY);
    }
    stopping.abort();
    await running;
    assert.deepEqual([cluster.requests.length, used.length], [requests, renewed]);
    assert.ok(new X509Certificate(current).validToDate.getTime() > clock.now(), 'it has never expired');
  });
}

test('repeats requests to an API server that does not sign certificates', async () => {
  const cluster = new Cluster(() => 'signs');
  let attempts = 0;
  const create = async () => {
    attempts++;
    throw new ApiError(404, 'NotFound', 'the server could not find the requested resource');
  };
  const current = cluster.certificate();
  const stopping = new AbortController();
  const parts = {
    name: 'n1',
    current: () => current,
    install: async () => assert.fail(),
    clock: cluster.clock,
    log: silentLog,
  };
  const running = keepNodeCertificate({ ...parts, client: { create } as unknown as Client }, stopping);
  await cluster.clock.advance(51 * DAY);
  stopping.abort();
  await running;
  assert.ok(attempts > 1 && attempts < 100, `${attempts} times in a day`);
});

test('requests nothing if the node has no client certificate', async () => {
  const cluster = new Cluster(() => 'signs');
  const stopping = new AbortController();
  const parts = {
    name: 'n1',
    current: () => undefined,
    install: async () => assert.fail(),
    clock: cluster.clock,
    log: silentLog,
  };
  const running = keepNodeCertificate({ ...parts, client: cluster.client() }, stopping);
  await cluster.clock.advance(400 * DAY);
  stopping.abort();
  await running;
  assert.equal(cluster.requests.length, 0);
});
