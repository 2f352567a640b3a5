/**
 * Measures the cost of guarding deletes: by a policy, by a webhook in the engine's process, and by one in another
 * process.
 */
import type { Rate } from './closed-loop.ts';
import type { Deletes, Turn } from './delete-load.ts';
import { GUARDED_KINDS, PROTECTED, registrations, type Guard } from './delete-guards.ts';
import { create, engineCertificate, prepareEngine } from './engine-process.ts';
import type { EngineBench } from './engine-bench.ts';
import { JSON_FIELDS, type Stock } from './operations.ts';
import type { Options } from './options.ts';
import { collectionPath, parcel } from './parcel.ts';
import { RawConnection, type Target } from './raw-h2.ts';
import { percent, type Row } from './report.ts';
import { median, percentile } from './statistics.ts';

const NAMESPACE = 'customs';
const CLIENTS = [1, 16];
/** Deletes per guard and round, in batches small enough that all guards see the same state of the machine. */
const DELETES = 400;
const BATCH = 100;
/** A policy takes two to six times as long until V8 has compiled it, after some ten thousand evaluations. */
const WARM_MS = 3000;
const WARM_CLIENTS = 16;
/** Real deletes take other code paths than the dry runs of the warm-up; these rounds do not count. */
const WARM_ROUNDS = 2;
const MIN_POLICY_RATIO = 0.97;

const GUARDS = Object.keys(GUARDED_KINDS) as Guard[];

export async function* measureAdmission(
  bench: EngineBench,
  { admissionRounds, profileDir }: Options,
): AsyncGenerator<Row> {
  await bench.stopEngine();
  await bench.startEngine({ isProfiled: profileDir !== undefined, script: 'bench/admission-engine.ts' });
  const target = await bench.target();
  await prepareEngine(target, Object.values(GUARDED_KINDS), [NAMESPACE]);
  const { ca } = await engineCertificate(bench.dataDir);
  await register(target, { ca, port: await bench.startWebhook() });

  await warmUp(bench, target);

  for (const clients of CLIENTS) {
    const rounds: Record<Guard, Deletes>[] = [];
    // One client mostly waits for the disk: it takes longer and shows less.
    const roundCount = clients === 1 ? Math.ceil(admissionRounds / 2) : admissionRounds;
    for (let round = -WARM_ROUNDS; round < roundCount; round++) {
      const stocks = GUARDS.map((guard): Stock => ({
        namespace: NAMESPACE,
        prefix: `c${clients}-r${round + WARM_ROUNDS}`,
        count: DELETES,
        kind: GUARDED_KINDS[guard],
      }));
      for (const stock of stocks) await bench.load.run({ kind: 'fill', target, stock });
      const deletes = await bench.load.run<Deletes[]>({ kind: 'deletes', target, stocks, clients, batch: BATCH });
      if (round < 0) continue;
      rounds.push(Object.fromEntries(GUARDS.map((guard, at) => [guard, deletes[at]!])) as Record<Guard, Deletes>);
    }
    for (const guard of GUARDS.slice(1)) yield row(guard, clients, rounds);
  }
}

/** Warms up with dry runs: they pass through all of admission, and the objects stay. */
async function warmUp(bench: EngineBench, target: Target): Promise<void> {
  for (const kind of Object.values(GUARDED_KINDS)) {
    const stock: Stock = { namespace: NAMESPACE, prefix: 'warm', count: WARM_CLIENTS, kind };
    await bench.load.run({ kind: 'fill', target, stock });
    const operation = { verb: 'dry delete', stock } as const;
    await bench.load.run<Rate>({
      kind: 'rate',
      target,
      operation,
      clients: WARM_CLIENTS,
      warmMs: 0,
      measureMs: WARM_MS,
    });
  }
}

async function register(target: Target, webhook: { port: number; ca: string }): Promise<void> {
  const connection = await RawConnection.connect(target, JSON_FIELDS);
  for (const { path, object } of registrations(webhook)) await create(connection, path, object);
  // A guard without effect would be the fastest of all.
  for (const guard of GUARDS) {
    const collection = collectionPath(NAMESPACE, GUARDED_KINDS[guard]);
    await create(connection, collection, parcel('probe', '0', { ...GUARDED_KINDS[guard], labels: PROTECTED }));
    const { status, body } = await connection.exchange('DELETE', `${collection}/probe`);
    const isRefused = body.toString().includes('cannot be deleted, remove the label');
    if (isRefused !== (guard !== 'none')) {
      throw new Error(
        `Cannot measure ${guard}: the delete of a protected object was answered with ${status}: ${body.toString()}`,
      );
    }
  }
  connection.close();
}

function row(guard: Guard, clients: number, rounds: readonly Record<Guard, Deletes>[]): Row {
  const turns = rounds.flatMap((round) => round[guard].turns);
  const unguarded = rounds.flatMap(({ none }) => none.turns);
  const medianOf = (of: readonly Turn[], value: (turn: Turn) => number) => median(of.map(value));
  const ratiosOf = (value: (turn: Turn) => number) => turns.map((turn, at) => value(turn) / value(unguarded[at]!));
  const ratios = ratiosOf(perSecond);
  const half = `${percent(percentile(ratios, 0.25))} to ${percent(percentile(ratios, 0.75))}`;
  return {
    what: `DELETE, ${guard}, ${clients === 1 ? '1 client' : `${clients} clients`}`,
    unit: 'perSecond',
    engine: medianOf(turns, perSecond),
    floor: medianOf(unguarded, perSecond),
    ratio: median(ratios),
    p50Ms: median(rounds.map((round) => round[guard].p50Ms)),
    p99Ms: median(rounds.map((round) => round[guard].p99Ms)),
    cpuUs: medianOf(turns, cpuUs),
    floorCpuUs: medianOf(unguarded, cpuUs),
    serverCores: medianOf(turns, ({ serverCpuMs, ms }) => serverCpuMs / ms),
    clientCores: medianOf(turns, ({ clientCpuMs, ms }) => clientCpuMs / ms),
    note: `half of the turns ${half}; ${percent(median(ratiosOf(cpuUs)))} of the CPU time`,
    ...(guard === 'policy' ? { bar: { ratioAtLeast: MIN_POLICY_RATIO } } : {}),
  };
}

const perSecond = ({ count, ms }: Turn) => (count / ms) * 1000;
const cpuUs = ({ count, serverCpuMs }: Turn) => (serverCpuMs / count) * 1000;
