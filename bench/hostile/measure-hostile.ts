/**
 * Measures what hostile requests and connections cost others: the p99 latency of a bystander's GET, heartbeat and new
 * connection during each attack, and in the quiet time before it.
 */
import { attacksIn } from '#test/load/hostile-requests.ts';
import { JobProcess } from '../jobs.ts';
import { pause } from '../pause.ts';
import { memoryBytes } from '../proc-files.ts';
import type { Row } from '../report.ts';
import type { VmBench } from '../vms/vm-bench.ts';
import { anonymousAttacks } from './anonymous-attacks.ts';
import type { AttackerJob, AttackResult } from './attacker.ts';
import { PREPARATION } from './preparation.ts';
import type { BystanderFigures, BystanderJob } from './bystander.ts';

/** No request of any user delays another user's small request by more than this. */
const MAX_DELAY_MS = 100;
const NAMESPACE = 'hostile';

export interface HostileOptions {
  readonly quietMs: number;
}

export async function* measureHostile(bench: VmBench, { quietMs }: HostileOptions): AsyncGenerator<Row> {
  await bench.startPlane({ nodes: 1, hypervisor: 'fake' });
  const token = await prepare(bench);
  const target = await bench.target();
  const bystander = new JobProcess<BystanderJob>('./hostile/bystander.ts');
  const attacker = new JobProcess<AttackerJob>('./hostile/attacker.ts');
  try {
    const leasePath = `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/bystander`;
    await bystander.run({ kind: 'start', target, getPath: '/api/v1/namespaces/default', leasePath });
    const during = async (work: () => Promise<unknown>): Promise<BystanderFigures> => {
      await bystander.run({ kind: 'begin' });
      await work();
      return bystander.run({ kind: 'end' });
    };
    // Warms up both sides.
    await during(() => pause(quietMs));
    const oldRevision = await currentRevision(bench);
    const requests = { kind: 'requests', target, namespace: NAMESPACE, token, oldRevision } as const;
    await attacker.run({ ...requests, name: PREPARATION });
    const jobs: AttackerJob[] = [
      ...Object.keys(attacksIn(NAMESPACE)).map((name) => ({ ...requests, name })),
      ...Object.keys(anonymousAttacks).map((name) => ({ kind: 'connections', name, target }) as const),
    ];
    for (const job of jobs) {
      const quiet = await during(() => pause(quietMs));
      const before = memoryBytes(bench.plane.pid, 'VmRSS');
      let result: AttackResult | undefined;
      const attacked = await during(async () => (result = await attacker.run(job)));
      const grown = memoryBytes(bench.plane.pid, 'VmRSS') - before;
      yield* rowsOf(job.name, quiet, attacked, describe(result!, grown));
    }
  } finally {
    await Promise.all([bystander.stop(), attacker.stop()]);
  }
}

async function currentRevision(bench: VmBench): Promise<number> {
  const path = '/api/v1/namespaces';
  const list = (await (await bench.transport()).request({ method: 'GET', path })).body;
  return Number((list as { metadata: { resourceVersion: string } }).metadata.resourceVersion);
}

function describe({ answers, seconds }: AttackResult, grown: number): string {
  const texts = Object.entries(answers).map(([status, count]) => `${count} ${status}`);
  return `${texts.join(', ')} in ${seconds.toFixed(1)} s; RSS +${Math.round(Math.max(0, grown) / 1e6)} MB`;
}

function* rowsOf(what: string, quiet: BystanderFigures, attacked: BystanderFigures, note: string): Generator<Row> {
  const bar = { moreThanFloor: MAX_DELAY_MS };
  const figures = ({ p50Ms, p99Ms, maxMs }: BystanderFigures['get'], more: string) => {
    return { p50Ms, p99Ms, engine: p99Ms, note: `max ${maxMs.toFixed(0)} ms${more}` };
  };
  yield { what: `${what}: GET`, unit: 'ms', floor: quiet.get.p99Ms, bar, ...figures(attacked.get, `; ${note}`) };
  yield { what: '  heartbeat', unit: 'ms', floor: quiet.heartbeat.p99Ms, bar, ...figures(attacked.heartbeat, '') };
  yield { what: '  new connection', unit: 'ms', floor: quiet.connect.p99Ms, bar, ...figures(attacked.connect, '') };
}

/** Creates the namespace, the lease and the attacker, who may do everything. Returns the attacker's token. */
async function prepare(bench: VmBench): Promise<string> {
  const transport = await bench.transport();
  const request = async (method: 'POST', path: string, body: object) =>
    (await transport.request({ method, path, body })).body;
  await request('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
  await request('POST', '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases', {
    ...{ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'bystander' }, spec: {} },
  });
  const accounts = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts`;
  await request('POST', accounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'mallory' } });
  await request('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'mallory' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', name: 'mallory', namespace: NAMESPACE }],
  });
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };
  const granted = (await request('POST', `${accounts}/mallory/token`, body)) as { status: { token: string } };
  return granted.status.token;
}
