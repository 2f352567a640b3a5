/**
 * A random walk over everything that could cost a VM its firmware uuid: made, changed, replaced, patched, applied,
 * snapshotted, restored (as itself or under another name), deleted, with nodes away and the server lost after any write.
 * A ledger knows which uuids somebody has decided on; no VM ever has another one, or none, once everything has come to
 * rest. In the end nobody is held any more, and when everything is deleted nothing is left.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { legacyUuid } from '#api/legacy-uuid.ts';
import { uuidOfUnseen } from '#api/uuid-admission.ts';
import { isRestoreFinished } from '#api/virtual-machine-restore/kind.ts';
import { storeAsIs, withoutFirmwareUuid } from '#test/support/old-objects.ts';
import { seededRandom, type SeededRandom } from '#test/support/seeded-random.ts';
import { aRestore, aSnapshot, removeEverything } from '#test/support/snapshots.ts';
import type { Answer, Loose } from '#test/support/test-api.ts';
import { aClaim, aVmOnClaim, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const STEPS = 50;
const MAX_WRITES = 16;
const STORAGE: Readonly<Record<string, string>> = { one: 'shared', two: 'local', three: 'shared' };
const NAMES = Object.keys(STORAGE);
const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
/** Longer than anything takes that everybody is there for. */
const MOMENT_MS = 15_000;
/** Longer than any wait for a target that runs, or for a node. */
const WHILE_MS = 330_000;

/** What is known of one VM: the uuids of which it may have any, as somebody decided. Empty: it may be absent only. */
class Ledger {
  readonly #decided = new Map<string, Set<string>>();
  readonly #ever = new Map<string, Set<string>>();
  readonly #mayBeAbsent = new Set<string>(NAMES);
  readonly #mayBeNew = new Set<string>();
  count = 0;

  decide(vm: string, uuid: string): void {
    const known = this.#decided.get(vm) ?? new Set();
    this.#decided.set(vm, known.add(uuid));
    this.#ever.set(vm, (this.#ever.get(vm) ?? new Set()).add(uuid.toLowerCase()));
  }

  /** Guests keep theirs until they start again. */
  everDecided(vm: string, uuid: string): boolean {
    return this.#ever.get(vm)?.has(uuid.toLowerCase()) === true;
  }

  mayGo(vm: string): void {
    this.#mayBeAbsent.add(vm);
  }

  /** Restored under this name it gets one that nobody ever had, where somebody has its own. */
  mayBecomeNew(vm: string): void {
    this.#mayBeNew.add(vm);
  }

  /** Settled: this is what it is. `open`: something that was asked for is still to come. */
  see(vm: string, uuid: string | undefined, { open }: { readonly open: boolean }): void {
    if (uuid === undefined) {
      assert.ok(this.#mayBeAbsent.has(vm), `${vm} is gone, and nobody deleted it`);
      if (!open) this.#decided.set(vm, new Set());
      return;
    }
    const nobodys = NAMES.every((name) => !this.everDecided(name, uuid));
    if (this.#mayBeNew.has(vm) && nobodys && uuid !== 'none') this.decide(vm, uuid);
    const known = [...(this.#decided.get(vm) ?? [])];
    assert.ok(known.includes(uuid), `${vm} has the uuid ${uuid}; decided were ${known.join(', ') || 'none'}`);
    if (open) return;
    this.#decided.set(vm, new Set([uuid]));
    this.#mayBeAbsent.delete(vm);
    this.#mayBeNew.delete(vm);
  }
}

interface Walk {
  readonly plane: VmPlane;
  readonly random: SeededRandom;
  readonly ledger: Ledger;
  /** What each snapshot holds, by its name. */
  readonly taken: Map<string, { readonly vm: string; readonly uuid: string }>;
}

type StepName =
  | 'create'
  | 'createWithUuid'
  | 'leftByAnOlderVersion'
  | 'createUnseen'
  | 'change'
  | 'takeAway'
  | 'replaceWithout'
  | 'applyManifest'
  | 'power'
  | 'snapshot'
  | 'restore'
  | 'restoreAnother'
  | 'restoreWhileSnapshotted'
  | 'forget'
  | 'node'
  | 'remove';

type Step = (walk: Walk, vm: string) => Promise<string>;

const uuidOf = (vm: Loose): string | undefined => vm?.spec.template.spec.domain.firmware?.uuid || undefined;
const onClaim = (vm: string, spec: Loose) => aVmOnClaim(vm, `${vm}-data`, spec);
const newUuid = (random: SeededRandom) =>
  `00000000-0000-4000-8000-${String(random.between(0, 999_999_999)).padStart(12, '0')}`;
/** Refused for a reason, or done; never because something of ours is broken. */
function answered({ status, text }: Answer): string {
  assert.ok(status < 500, text);
  return status < 300 ? 'done' : `refused ${status}`;
}

const firmware = (value: Loose) => ({ spec: { template: { spec: { domain: { firmware: value } } } } });

/** Each says what it did. Whatever it may have decided is in the ledger before it is asked for. */
const steps: Readonly<Record<StepName, Step>> = {
  async create({ plane, random, ledger }, vm) {
    const body = onClaim(vm, { runStrategy: random.pick(['Always', 'Halted', 'Manual']) });
    const made = await plane.call('POST', VMS, { body });
    if (made.status === 201) ledger.decide(vm, uuidOf(made.body) ?? '');
    return `create ${vm}: ${answered(made)}`;
  },
  async createWithUuid({ plane, random, ledger }, vm) {
    const uuid = newUuid(random);
    const body = onClaim(vm, { runStrategy: 'Halted' });
    Object.assign(body.spec.template.spec.domain.firmware, { uuid });
    ledger.decide(vm, uuid);
    return `create ${vm} with ${uuid}: ${answered(await plane.call('POST', VMS, { body }))}`;
  },
  async leftByAnOlderVersion({ plane, ledger }, vm) {
    ledger.decide(vm, legacyUuid(vm));
    await storeAsIs(plane, withoutFirmwareUuid(onClaim(vm, { runStrategy: 'Halted' })));
    return `old ${vm} without uuid`;
  },
  async createUnseen({ plane, ledger }, vm) {
    const creationTimestamp = new Date(plane.clock.now()).toISOString().replace(/\.\d+Z$/, 'Z');
    const uid = `0f0f0f0f-0000-4000-8000-${String(++ledger.count).padStart(12, '0')}`;
    const unseen = withoutFirmwareUuid(onClaim(vm, { runStrategy: 'Halted' }));
    const object = { ...unseen, metadata: { ...unseen.metadata, uid, creationTimestamp } };
    ledger.decide(vm, uuidOfUnseen(object, creationTimestamp));
    await storeAsIs(plane, object);
    return `${vm} without uuid, as no webhook has seen it`;
  },
  async change({ plane, random, ledger }, vm) {
    const uuid = newUuid(random);
    ledger.decide(vm, uuid);
    return `change ${vm} to ${uuid}: ${answered(await plane.call('PATCH', `${VMS}/${vm}`, { body: firmware({ uuid }) }))}`;
  },
  async takeAway({ plane, random }, vm) {
    const body = firmware(random.pick([null, { uuid: null }, { uuid: '' }, { serial: null }]));
    const answer = await plane.call('PATCH', `${VMS}/${vm}`, { body });
    // One that an older version left, and nobody has looked at yet, has none to lose.
    return `take away ${JSON.stringify(body)} of ${vm}: ${answered(answer)}`;
  },
  async replaceWithout({ plane }, vm) {
    const there = await plane.get('VirtualMachine', vm);
    const answer = await plane.call('PUT', `${VMS}/${vm}`, { body: withoutFirmwareUuid(there) });
    return `replace ${vm} without uuid: ${answered(answer)}`;
  },
  async applyManifest({ plane }, vm) {
    const { spec } = onClaim(vm, {});
    return `apply ${vm}: ${answered(await plane.call('PATCH', `${VMS}/${vm}`, { body: { spec } }))}`;
  },
  async power({ plane, random }, vm) {
    const verb = random.pick(['start', 'stop', 'restart', 'start']);
    return `${verb} ${vm}: ${await plane.tell(verb, vm)}`;
  },
  async snapshot({ plane, ledger }, vm) {
    const name = `shot-${++ledger.count}`;
    return `snapshot ${name} of ${vm}: ${answered(await plane.post(aSnapshot(name, vm)))}`;
  },
  async restore({ plane, random, ledger, taken }, vm) {
    const own = [...taken].filter(([, shot]) => shot.vm === vm);
    if (own.length === 0) return await steps.snapshot({ plane, random, ledger, taken }, vm);
    const [from, { uuid }] = random.pick(own);
    ledger.decide(vm, uuid);
    const policy = { targetReadinessPolicy: random.pick(['StopTarget', 'WaitGracePeriod', 'FailImmediate']) };
    const name = `restore-${++ledger.count}`;
    const made = await plane.post(aRestore(name, vm, from, policy));
    return `restore ${name} of ${vm} from ${from} (${policy.targetReadinessPolicy}): ${answered(made)}`;
  },
  async restoreAnother({ plane, random, ledger, taken }, vm) {
    const others = [...taken].filter(([, shot]) => shot.vm !== vm);
    if (others.length === 0) return 'no snapshot of another VM';
    const [from, shot] = random.pick(others);
    ledger.decide(vm, shot.uuid);
    ledger.mayBecomeNew(vm);
    const name = `restore-${++ledger.count}`;
    const made = await plane.post(aRestore(name, vm, from));
    return `restore ${name} of ${vm} from ${from} of ${shot.vm}: ${answered(made)}`;
  },
  /** By its name the snapshot is the first of the two that asked at the same time. */
  async restoreWhileSnapshotted({ plane, random, ledger, taken }, vm) {
    const [from, shot] = [...taken].findLast((one) => one[1].vm === vm) ?? [];
    if (from === undefined || shot === undefined) return await steps.snapshot({ plane, random, ledger, taken }, vm);
    ledger.decide(vm, shot.uuid);
    const number = ++ledger.count;
    for (const { host } of plane.nodes) host.holdCopies = true;
    await plane.post(aSnapshot(`early-${number}`, vm));
    const made = await plane.post(aRestore(`restore-${number}`, vm, from, { targetReadinessPolicy: 'StopTarget' }));
    return `restore ${number} of ${vm} from ${from} while snapshot early-${number} is taken: ${answered(made)}`;
  },
  async forget({ plane, random, taken }) {
    const kind = random.pick(['VirtualMachineSnapshot', 'VirtualMachineRestore']);
    const there = await plane.list(kind);
    if (there.length === 0) return `no ${kind}`;
    const { name } = random.pick(there).metadata;
    taken.delete(name);
    await plane.drop(kind, name);
    return `delete ${kind} ${name}`;
  },
  async node({ plane, random }) {
    const node = random.pick(plane.nodes);
    if (random.chance(0.5)) await plane.killNode(node.name);
    else node.isolate();
    return `${node.name} is away`;
  },
  async remove({ plane, ledger }, vm) {
    ledger.mayGo(vm);
    return `delete ${vm}: ${answered(await plane.call('DELETE', `${VMS}/${vm}`))}`;
  },
};

/** What is worth trying; what matters most stands more than once. */
const WHEN_ABSENT: readonly StepName[] = [
  'create',
  'createWithUuid',
  'leftByAnOlderVersion',
  'createUnseen',
  'restore',
  'restore',
  'restoreAnother',
  'restoreAnother',
];
const WHEN_THERE: readonly StepName[] = [
  'change',
  'takeAway',
  'replaceWithout',
  'applyManifest',
  'power',
  'power',
  'snapshot',
  'snapshot',
  'restore',
  'restore',
  'restoreAnother',
  'restoreWhileSnapshotted',
  'restoreWhileSnapshotted',
  'forget',
  'node',
  'remove',
  'remove',
];

/** One step, with the server lost after so many writes, or not. */
async function walkOn(walk: Walk): Promise<string> {
  const { plane, random } = walk;
  if (random.chance(0.5)) await everybodyBack(plane);
  const vm = random.pick(NAMES);
  const isAbsent = (await plane.find('VirtualMachine', vm)) === undefined;
  const name = random.pick(isAbsent ? WHEN_ABSENT : WHEN_THERE);
  const step: Step = steps[name];
  if (random.chance(0.4)) return await step(walk, vm);
  const writes = random.between(0, MAX_WRITES);
  const cut = plane.cutAfter(writes);
  const run = async () => {
    const said = await step(walk, vm);
    await plane.settle();
    return said;
  };
  const running = run().catch((error: unknown) => `${name} ${vm}: ${String(error).split('\n', 1)[0]}`);
  const said = await Promise.race([running, cut]);
  const missing = name === 'create' && said === 'cut';
  // An agent that starts and reaches nobody would be waited for.
  const agents = random.chance(0.3) && plane.nodes.every(({ isIsolated }) => !isIsolated);
  await plane.restartServer({ agents });
  if (missing) await hearOfCreated(walk, vm);
  return `${said === 'cut' ? `${name} ${vm}` : said}, server lost after ${writes} writes`;
}

async function everybodyBack(plane: VmPlane): Promise<void> {
  for (const { name } of plane.nodes) await plane.bringBack(name);
}

/** A create whose answer never came has made a uuid that nobody has heard of. */
async function hearOfCreated({ plane, ledger }: Walk, vm: string): Promise<void> {
  const there = await plane.find('VirtualMachine', vm);
  if (there !== undefined) ledger.decide(vm, uuidOf(there) ?? '');
}

async function isUnderWay({ plane }: Walk): Promise<boolean> {
  const restores = await plane.list('VirtualMachineRestore');
  const snapshots = await plane.list('VirtualMachineSnapshot');
  const vms = await plane.list('VirtualMachine');
  return (
    restores.some((restore) => !isRestoreFinished(restore)) ||
    snapshots.some(({ status }) => status?.phase !== 'Succeeded' && status?.phase !== 'Failed') ||
    vms.some(({ metadata }) => metadata.deletionTimestamp !== undefined)
  );
}

async function look({ plane, ledger, taken }: Walk): Promise<void> {
  const restores = (await plane.list('VirtualMachineRestore')).filter((restore) => !isRestoreFinished(restore));
  const vms = await plane.list('VirtualMachine');
  for (const vm of NAMES) {
    const there = vms.find(({ metadata }) => metadata.name === vm);
    const isRestored = restores.some(({ spec }) => spec.target.name === vm);
    const open = isRestored || there?.metadata.deletionTimestamp !== undefined;
    ledger.see(vm, there === undefined ? undefined : (uuidOf(there) ?? 'none'), { open });
  }
  const staying = vms.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  for (const vm of staying) lookForTwins(vm, staying);
  for (const { metadata, status } of await plane.list('VirtualMachineSnapshot')) {
    if (status?.phase !== 'Succeeded' || taken.has(metadata.name)) continue;
    const content = await plane.get('VirtualMachineSnapshotContent', status.virtualMachineSnapshotContentName);
    const vm = content.spec.source.virtualMachine;
    taken.set(metadata.name, { vm: vm.metadata.name, uuid: uuidOf(vm) ?? '' });
  }
}

/** Two with one uuid are told of it, and nobody else is. */
function lookForTwins(vm: Loose, vms: readonly Loose[]): void {
  const own = uuidOf(vm)?.toLowerCase();
  const twins = vms.filter((other) => other !== vm && uuidOf(other)?.toLowerCase() === own);
  const told = vm.status?.conditions?.some(({ type }: Loose) => type === 'DuplicateFirmwareUUID') === true;
  assert.equal(told, twins.length > 0, `${vm.metadata.name} has ${twins.length} twins`);
}

/** Once everybody is back, all that was asked for has come to an end. */
async function verifyEnd({ plane, ledger }: Walk): Promise<void> {
  const restores = await plane.list('VirtualMachineRestore');
  assert.deepEqual(
    restores.filter((restore) => !isRestoreFinished(restore)).map(({ metadata }) => metadata.name),
    [],
  );
  for (const { metadata, status } of await plane.list('VirtualMachineSnapshot')) {
    assert.match(status?.phase ?? 'none', /^(Succeeded|Failed)$/, `snapshot ${metadata.name}`);
  }
  for (const { metadata, status } of await plane.list('VirtualMachine')) {
    assert.equal(status.snapshotInProgress ?? status.restoreInProgress, undefined, `${metadata.name} is held`);
  }
  for (const vm of NAMES) {
    for (const { machine } of plane.startsOf(vm)) assert.ok(ledger.everDecided(vm, machine.firmware.uuid));
  }
}

test('no VM ever loses its uuid, or gets one that nobody decided on', async (t) => {
  const random = seededRandom(t);
  const plane = await startVmPlane(t);
  const walk: Walk = { plane, random, ledger: new Ledger(), taken: new Map() };
  for (const vm of NAMES) await plane.apply(aClaim(`${vm}-data`, { storageClassName: STORAGE[vm] }));
  const done: string[] = [];
  try {
    // Something to restore, from the first step on.
    for (const make of [steps.create, steps.snapshot]) {
      for (const vm of NAMES.slice(0, 2)) done.push(await make(walk, vm));
      await plane.advance(MOMENT_MS);
      await look(walk);
    }
    for (let step = 0; step < STEPS; step++) {
      done.push(await walkOn(walk));
      for (const { host } of plane.nodes) {
        host.holdCopies = false;
        host.finishCopies();
      }
      await plane.advance(MOMENT_MS);
      if (await isUnderWay(walk)) await plane.advance(WHILE_MS);
      await look(walk);
    }
    await everybodyBack(plane);
    await plane.advance(WHILE_MS);
    await look(walk);
    const restores = await plane.list('VirtualMachineRestore');
    const complete = restores.filter(({ status }) => status?.complete === true).length;
    t.diagnostic(`${walk.taken.size} snapshots, ${restores.length} restores of which ${complete} complete`);
    await verifyEnd(walk);
    await removeEverything(plane);
  } catch (error) {
    throw new Error(`${(error as Error).message}\nafter:\n${done.join('\n')}`, { cause: error });
  }
});
