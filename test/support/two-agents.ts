/**
 * Two node agents with simulated guests on a test API, and the streams between them; the test plays the controllers. An
 * agent can be killed: it then reaches neither the API nor guests nor the other agent, and a new agent takes over.
 */
import assert from 'node:assert/strict';
import { duplexPair, Transform, type Duplex } from 'node:stream';
import type { TestContext } from 'node:test';
import { buildCrd } from '#api/custom-kinds/custom-kind.ts';
import { customKinds } from '#api/custom-kinds/all-kinds.ts';
import { createInProcessTransport } from '#client/in-process.ts';
import { createClient } from '#client/rest-client.ts';
import { FakeClock, settle } from '#lib/testing/fake-clock.ts';
import { MASTERS } from '#engine/auth/groups.ts';
import { silentLog } from '#lib/log.ts';
import { startNodeAgent, type RunningAgent } from '#node/agent/node-agent.ts';
import { createFakeHypervisor, type FakeHypervisor } from '#node/hypervisor/fake/fake-hypervisor.ts';
import { volumeSnapshotDefinitions } from '#operator/objects/volume-snapshot-definitions.ts';
import { aLauncher, aVmi, fakeVolumes, PODS, VMIS, type FakeVolumes } from '#test/support/agent-scene.ts';
import { startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';

export type NodeName = 'n1' | 'n2';
export const UID = 'aaaaaaaa-0000-4000-8000-000000000001';

interface AgentProcess {
  agent: RunningAgent;
  hypervisor: FakeHypervisor;
  /** Disconnects the agent from everything that it reaches. */
  disconnect(): void;
  isDead(): boolean;
}

export interface TwoAgents {
  readonly api: TestApi;
  readonly clock: FakeClock;
  readonly volumes: Readonly<Record<NodeName, FakeVolumes>>;
  /** Every message between the agents, as `n1: begin`, without keep-alives. */
  readonly messages: string[];
  /** Called with each message before the other side receives it, and with the number of messages so far. */
  onMessage: (message: string, count: number) => void;
  hypervisor(node: NodeName): FakeHypervisor;
  agent(node: NodeName): RunningAgent;
  settle(): Promise<void>;
  advance(seconds: number): Promise<void>;
  /** Ends every stream between the two agents. */
  cutStreams(): void;
  /** While true, the agents cannot connect to each other. */
  areDisconnected: boolean;
  /** API requests of the agents wait for this promise. */
  apiDelay: Promise<void>;
  /** Kills the agent without a clean stop; `revive` starts the next one. */
  kill(node: NodeName): void;
  revive(node: NodeName): Promise<void>;
  /** Starts a guest with persistent state on n1, and creates a target pod for its migration on n2. */
  launch(spec?: Loose): Promise<MigratingPods>;
  nodesRunning(id: string): NodeName[];
}

export interface MigratingPods {
  readonly id: string;
  readonly source: Loose;
  readonly target: Loose;
}

export async function startTwoAgents(t: TestContext): Promise<TwoAgents> {
  const clock = new FakeClock();
  const api = await startTestApi({ clock });
  await api.settle();
  const definitions = [...customKinds.map(buildCrd), ...volumeSnapshotDefinitions.map(({ object }) => object)];
  for (const body of definitions) {
    await api.ok('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { body });
  }
  await api.settle();
  const volumes = { n1: fakeVolumes(), n2: fakeVolumes() };
  const processes = new Map<NodeName, AgentProcess>();
  const streams = new Set<Duplex>();

  const open = (from: NodeName, to: NodeName): Duplex => {
    const { agent: { migrations: peer } = {}, isDead = () => true } = processes.get(to) ?? {};
    if (scene.areDisconnected || isDead() || peer === undefined) throw new Error(`${to} is unreachable`);
    const [here, wireHere] = duplexPair();
    const [there, wireThere] = duplexPair();
    wireHere.pipe(recordMessages(from)).pipe(wireThere);
    wireThere.pipe(recordMessages(to)).pipe(wireHere);
    for (const stream of [here, wireHere, there, wireThere]) {
      streams.add(stream);
      stream.on('error', () => {});
      stream.once('close', () => streams.delete(stream));
    }
    here.once('close', () => there.destroy());
    there.once('close', () => here.destroy());
    void peer.accept(from, there);
    return here;
  };
  const recordMessages = (from: NodeName): Transform => {
    const transform = new Transform({
      transform(chunk: Buffer, _, done) {
        for (const text of chunk.toString().split('\n')) {
          const type = /"type":"([a-z-]+)"/.exec(text)?.[1];
          if (type === undefined || type === 'still-there') continue;
          scene.onMessage(`${from}: ${type}`, scene.messages.push(`${from}: ${type}`));
        }
        done(null, chunk);
      },
    });
    transform.on('error', () => {});
    return transform;
  };

  const start = async (name: NodeName, host?: FakeHypervisor['host']): Promise<void> => {
    let isDead = false;
    const hypervisor = createFakeHypervisor({ clock, ...(host && { host }) });
    const handler = async (request: Parameters<typeof api.core.handler>[0]) => {
      await scene.apiDelay;
      if (isDead) throw new Error(`the agent of ${name} is dead`);
      return await api.core.handler(request);
    };
    const user = { name: `system:node:${name}`, groups: ['system:nodes', MASTERS, 'system:authenticated'] };
    const client = createClient(createInProcessTransport({ handler, user, userAgent: name }));
    const agent = await startNodeAgent({
      name,
      client,
      hypervisor,
      volumes: volumes[name],
      guest: undefined,
      endpoint: { address: '127.0.0.1', port: 10_250 },
      sandboxed: false,
      clock,
      log: silentLog,
      peers: {
        async open(node) {
          if (isDead) throw new Error(`the agent of ${name} is dead`);
          return open(name, node as NodeName);
        },
      },
    });
    processes.set(name, { agent, hypervisor, disconnect: () => void (isDead = true), isDead: () => isDead });
  };

  const scene: TwoAgents = {
    api,
    clock,
    volumes,
    messages: [],
    onMessage: () => {},
    areDisconnected: false,
    apiDelay: Promise.resolve(),
    hypervisor: (node) => processes.get(node)!.hypervisor,
    agent: (node) => processes.get(node)!.agent,
    async settle() {
      for (let round = 0, quiet = 0; quiet < 3; round++) {
        assert.ok(round < 300, 'the agents do not settle');
        const before = api.store.revision + scene.messages.length;
        await api.settle();
        for (let turns = 0; turns < 20; turns++) await settle();
        quiet = api.store.revision + scene.messages.length === before ? quiet + 1 : 0;
      }
    },
    async advance(seconds) {
      for (let left = seconds; left > 0; left -= 5) {
        await clock.advance(Math.min(left, 5) * 1000);
        await scene.settle();
      }
    },
    cutStreams() {
      for (const stream of streams) stream.destroy();
    },
    kill(name) {
      const { hypervisor, disconnect } = processes.get(name)!;
      disconnect();
      // The hypervisor that adopts the host last is the only one that reaches the guests.
      void createFakeHypervisor({ clock, host: hypervisor.host }).adopt();
      scene.cutStreams();
    },
    async revive(name) {
      const { agent, hypervisor } = processes.get(name)!;
      const stopped = agent.stop();
      await scene.advance(10);
      await stopped;
      await start(name, hypervisor.host);
      await scene.settle();
    },
    async launch(spec = {}) {
      const vmi = await api.ok('POST', VMIS, { body: withState(aVmi('db', spec)) });
      const id: string = vmi.metadata.uid;
      const source = await api.ok('POST', PODS, { body: aLauncher(vmi, { volumes: [stateVolume('state-a')] }) });
      const status = { phase: 'Scheduled', nodeName: 'n1', activePods: { [source.metadata.uid]: 'n1' } };
      await api.ok('PATCH', `${VMIS}/db/status`, { body: { status } });
      await scene.settle();
      const podSpec = { name: 'launcher-db-2', nodeName: 'n2', volumes: [stateVolume('state-b')] };
      const body = aLauncher(vmi, podSpec);
      body.metadata.labels['kubevirt.io/migrationJobUID'] = UID;
      const target = await api.ok('POST', PODS, { body });
      await scene.settle();
      const guest = scene.hypervisor('n1').guest(id);
      guest.setMemory('newest', 'memory');
      guest.writeState('tpm', 'secret');
      guest.writeState('efi/BootOrder', '0001');
      return { id, source, target };
    },
    nodesRunning: (id) =>
      (['n1', 'n2'] as const).filter((node) => {
        const host = processes.get(node)?.hypervisor.host;
        return host?.guest(id)?.domain.current.state === 'running';
      }),
  };
  for (const name of ['n1', 'n2'] as const) await start(name);
  t.after(async () => {
    await Promise.all([...processes.values()].map(({ agent }) => agent.stop()));
    await api.stop();
  });
  await scene.settle();
  return scene;
}

function withState(vmi: Loose): Loose {
  vmi.spec.domain.firmware.bootloader = { efi: { persistent: true, secureBoot: false } };
  vmi.spec.domain.devices.tpm = { persistent: true };
  return vmi;
}

const stateVolume = (claimName: string) => ({ name: 'vm-state', persistentVolumeClaim: { claimName } });

/** Writes what the controllers write to request the migration of the guest. */
export async function requestMigration(
  { api, settle: rest }: TwoAgents,
  moving: MigratingPods,
  more: Loose = {},
): Promise<void> {
  const migrationState = {
    migrationUid: UID,
    mode: 'PreCopy',
    sourceNode: 'n1',
    sourcePod: moving.source.metadata.name,
    targetNode: 'n2',
    targetPod: moving.target.metadata.name,
    startTimestamp: '2030-03-17T17:46:40Z',
    ...more,
  };
  const activePods = { [moving.source.metadata.uid]: 'n1', [moving.target.metadata.uid]: 'n2' };
  await api.ok('PATCH', `${VMIS}/db/status`, { body: { status: { migrationState, activePods } } });
  await rest();
}

/** Returns what the controllers decide from the reports of the agents, or undefined while they cannot decide. */
export async function migrationOutcome(
  { api }: TwoAgents,
  moving: MigratingPods,
): Promise<'committed' | 'aborted' | undefined> {
  const { status } = await api.ok('GET', `${VMIS}/db`);
  const phase = status.migrationProgress?.migrationUid === UID ? status.migrationProgress.phase : undefined;
  const pods: Loose[] = [];
  for (const { metadata } of [moving.source, moving.target]) {
    const { body } = await api.call('GET', `${PODS}/${metadata.name}`);
    pods.push(body);
  }
  const [source, target] = pods;
  const isCommitted = pods.some((pod) =>
    pod.status?.conditions?.some(
      (condition: Loose) =>
        condition.type === 'selfsame.io/MigrationCommitted' && condition.status === 'True' && condition.message === UID,
    ),
  );
  if (phase === 'Committed' || isCommitted || source.status?.reason === 'Migrated') return 'committed';
  const hasSourceEnded = source.status?.phase === 'Failed' || source.status?.phase === 'Succeeded';
  const isAborted = phase === 'Failed' || target.status?.reason === 'MigrationAborted' || hasSourceEnded;
  return isAborted ? 'aborted' : undefined;
}

/** Writes what the controllers write after the decision. */
export async function concludeMigration(
  scene: TwoAgents,
  moving: MigratingPods,
  decision: 'committed' | 'aborted',
): Promise<void> {
  const [remaining, removed] =
    decision === 'committed' ? [moving.target, moving.source] : [moving.source, moving.target];
  const { nodeName } = remaining.spec;
  const migrationState = { completed: true, ...(decision === 'aborted' && { failed: true }) };
  const activePods = { [removed.metadata.uid]: null, [remaining.metadata.uid]: nodeName };
  await scene.api.ok('PATCH', `${VMIS}/db/status`, { body: { status: { migrationState, nodeName, activePods } } });
  const labels = { 'kubevirt.io/nodeName': nodeName };
  await scene.api.ok('PATCH', `${VMIS}/db`, { body: { metadata: { labels } } });
  await scene.api.call('DELETE', `${PODS}/${removed.metadata.name}`);
  await scene.settle();
}
