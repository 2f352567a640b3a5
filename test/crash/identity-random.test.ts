/**
 * A random walk over everything that could cost a VM its firmware UUID: VMs are created, changed, replaced, patched,
 * applied, snapshotted, restored (to the same or another name) and deleted, with nodes away and the server killed after
 * any write. A ledger knows which UUIDs were chosen for each VM; a settled VM never has another one or none. In the end
 * no VM is held, and when everything is deleted nothing is left.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { legacyUuid } from '#api/identity/legacy-uuid.ts';
import { deriveMissingUuid } from '#api/identity/uuid-admission.ts';
import { isRestoreFinished } from '#api/virtual-machine-restore/kind.ts';
import { storePastAdmission, withoutFirmwareUuid } from '#test/support/old-objects.ts';
import { createSeededRandom, type SeededRandom } from '#test/support/seeded-random.ts';
import { aRestore, aSnapshot, deleteEverything } from '#test/support/snapshots.ts';
import type { TestResponse, Loose } from '#test/support/test-api.ts';
import { aClaim, aVmOnClaim, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const STEPS = 50;
const MAX_WRITES = 16;
const STORAGE: Readonly<Record<string, string>> = { one: 'shared', two: 'local', three: 'shared' };
const NAMES = Object.keys(STORAGE);
const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
/** Longer than anything takes while all nodes are up. */
const SHORT_WAIT_MS = 15_000;
/** Longer than any wait for a target that runs, or for a node. */
const LONGEST_WAIT_MS = 330_000;

/** The UUIDs that each VM may have. A VM without any must be absent. */
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

  /** Reports whether the VM ever had this UUID: a guest keeps its UUID until it starts again. */
  hadUuid(vm: string, uuid: string): boolean {
    return this.#ever.get(vm)?.has(uuid.toLowerCase()) === true;
  }

  allowAbsence(vm: string): void {
    this.#mayBeAbsent.add(vm);
  }

  /** Allows a UUID that no VM had before: a restore to this name gets one if another VM has that of the snapshot. */
  allowNewUuid(vm: string): void {
    this.#mayBeNew.add(vm);
  }

  /** Checks the UUID of a VM on a settled plane. `open`: a request for this VM is not complete yet. */
  check(vm: string, uuid: string | undefined, { open }: { readonly open: boolean }): void {
    if (uuid === undefined) {
      assert.ok(this.#mayBeAbsent.has(vm), `${vm} is missing, but was not deleted`);
      if (!open) this.#decided.set(vm, new Set());
      return;
    }
    const isUnused = NAMES.every((name) => !this.hadUuid(name, uuid));
    if (this.#mayBeNew.has(vm) && isUnused && uuid !== 'none') this.decide(vm, uuid);
    const known = [...(this.#decided.get(vm) ?? [])];
    assert.ok(known.includes(uuid), `${vm} has the uuid ${uuid}; allowed are ${known.join(', ') || 'none'}`);
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
  /** The VM and UUID in each snapshot, by the name of the snapshot. */
  readonly taken: Map<string, { readonly vm: string; readonly uuid: string }>;
}

type StepName =
  | 'create'
  | 'createWithUuid'
  | 'storeOldVm'
  | 'createUnadmitted'
  | 'change'
  | 'removeFirmware'
  | 'replaceWithoutUuid'
  | 'applyManifest'
  | 'power'
  | 'snapshot'
  | 'restore'
  | 'restoreFromOtherVm'
  | 'restoreWhileSnapshotted'
  | 'deleteSnapshotOrRestore'
  | 'disconnectNode'
  | 'remove';

type Step = (walk: Walk, vm: string) => Promise<string>;

const uuidOf = (vm: Loose): string | undefined => vm?.spec.template.spec.domain.firmware?.uuid || undefined;
const onClaim = (vm: string, spec: Loose) => aVmOnClaim(vm, `${vm}-data`, spec);
const newUuid = (random: SeededRandom) =>
  `00000000-0000-4000-8000-${String(random.between(0, 999_999_999)).padStart(12, '0')}`;
/** Returns the outcome of the request, which must not be an internal error. */
function outcomeOf({ status, text }: TestResponse): string {
  assert.ok(status < 500, text);
  return status < 300 ? 'done' : `refused ${status}`;
}

const firmware = (value: Loose) => ({ spec: { template: { spec: { domain: { firmware: value } } } } });

/** Each step returns what it did. It enters every UUID that it may choose into the ledger before the request. */
const steps: Readonly<Record<StepName, Step>> = {
  async create({ plane, random, ledger }, vm) {
    const body = onClaim(vm, { runStrategy: random.pick(['Always', 'Halted', 'Manual']) });
    const made = await plane.call('POST', VMS, { body });
    if (made.status === 201) ledger.decide(vm, uuidOf(made.body) ?? '');
    return `create ${vm}: ${outcomeOf(made)}`;
  },
  async createWithUuid({ plane, random, ledger }, vm) {
    const uuid = newUuid(random);
    const body = onClaim(vm, { runStrategy: 'Halted' });
    Object.assign(body.spec.template.spec.domain.firmware, { uuid });
    ledger.decide(vm, uuid);
    return `create ${vm} with ${uuid}: ${outcomeOf(await plane.call('POST', VMS, { body }))}`;
  },
  async storeOldVm({ plane, ledger }, vm) {
    ledger.decide(vm, legacyUuid(vm));
    await storePastAdmission(plane, withoutFirmwareUuid(onClaim(vm, { runStrategy: 'Halted' })));
    return `old ${vm} without uuid`;
  },
  async createUnadmitted({ plane, ledger }, vm) {
    const creationTimestamp = new Date(plane.clock.now()).toISOString().replace(/\.\d+Z$/, 'Z');
    const uid = `0f0f0f0f-0000-4000-8000-${String(++ledger.count).padStart(12, '0')}`;
    const unseen = withoutFirmwareUuid(onClaim(vm, { runStrategy: 'Halted' }));
    const object = { ...unseen, metadata: { ...unseen.metadata, uid, creationTimestamp } };
    ledger.decide(vm, deriveMissingUuid(object, creationTimestamp));
    await storePastAdmission(plane, object);
    return `${vm} without uuid, stored without admission`;
  },
  async change({ plane, random, ledger }, vm) {
    const uuid = newUuid(random);
    ledger.decide(vm, uuid);
    return `change ${vm} to ${uuid}: ${outcomeOf(await plane.call('PATCH', `${VMS}/${vm}`, { body: firmware({ uuid }) }))}`;
  },
  async removeFirmware({ plane, random }, vm) {
    const body = firmware(random.pick([null, { uuid: null }, { uuid: '' }, { serial: null }]));
    const answer = await plane.call('PATCH', `${VMS}/${vm}`, { body });
    // A VM of an older version that the controller has not seen yet has no UUID to lose.
    return `take away ${JSON.stringify(body)} of ${vm}: ${outcomeOf(answer)}`;
  },
  async replaceWithoutUuid({ plane }, vm) {
    const existing = await plane.get('VirtualMachine', vm);
    const answer = await plane.call('PUT', `${VMS}/${vm}`, { body: withoutFirmwareUuid(existing) });
    return `replace ${vm} without uuid: ${outcomeOf(answer)}`;
  },
  async applyManifest({ plane }, vm) {
    const { spec } = onClaim(vm, {});
    return `apply ${vm}: ${outcomeOf(await plane.call('PATCH', `${VMS}/${vm}`, { body: { spec } }))}`;
  },
  async power({ plane, random }, vm) {
    const verb = random.pick(['start', 'stop', 'restart', 'start']);
    return `${verb} ${vm}: ${await plane.beginVerb(verb, vm)}`;
  },
  async snapshot({ plane, ledger }, vm) {
    const name = `shot-${++ledger.count}`;
    return `snapshot ${name} of ${vm}: ${outcomeOf(await plane.post(aSnapshot(name, vm)))}`;
  },
  async restore({ plane, random, ledger, taken }, vm) {
    const own = [...taken].filter(([, shot]) => shot.vm === vm);
    if (own.length === 0) return await steps.snapshot({ plane, random, ledger, taken }, vm);
    const [from, { uuid }] = random.pick(own);
    ledger.decide(vm, uuid);
    const policy = { targetReadinessPolicy: random.pick(['StopTarget', 'WaitGracePeriod', 'FailImmediate']) };
    const name = `restore-${++ledger.count}`;
    const made = await plane.post(aRestore(name, vm, from, policy));
    return `restore ${name} of ${vm} from ${from} (${policy.targetReadinessPolicy}): ${outcomeOf(made)}`;
  },
  async restoreFromOtherVm({ plane, random, ledger, taken }, vm) {
    const others = [...taken].filter(([, shot]) => shot.vm !== vm);
    if (others.length === 0) return 'no snapshot of another VM';
    const [from, shot] = random.pick(others);
    ledger.decide(vm, shot.uuid);
    ledger.allowNewUuid(vm);
    const name = `restore-${++ledger.count}`;
    const made = await plane.post(aRestore(name, vm, from));
    return `restore ${name} of ${vm} from ${from} of ${shot.vm}: ${outcomeOf(made)}`;
  },
  /** Requests both at the same time; the name of the snapshot makes it the first. */
  async restoreWhileSnapshotted({ plane, random, ledger, taken }, vm) {
    const [from, shot] = [...taken].findLast((one) => one[1].vm === vm) ?? [];
    if (from === undefined || shot === undefined) return await steps.snapshot({ plane, random, ledger, taken }, vm);
    ledger.decide(vm, shot.uuid);
    const number = ++ledger.count;
    for (const { host } of plane.nodes) host.holdCopies = true;
    await plane.post(aSnapshot(`early-${number}`, vm));
    const made = await plane.post(aRestore(`restore-${number}`, vm, from, { targetReadinessPolicy: 'StopTarget' }));
    return `restore ${number} of ${vm} from ${from} while snapshot early-${number} is taken: ${outcomeOf(made)}`;
  },
  async deleteSnapshotOrRestore({ plane, random, taken }) {
    const kind = random.pick(['VirtualMachineSnapshot', 'VirtualMachineRestore']);
    const existing = await plane.list(kind);
    if (existing.length === 0) return `no ${kind}`;
    const { name } = random.pick(existing).metadata;
    taken.delete(name);
    await plane.beginDelete(kind, name);
    return `delete ${kind} ${name}`;
  },
  async disconnectNode({ plane, random }) {
    const node = random.pick(plane.nodes);
    if (random.chance(0.5)) await plane.killNode(node.name);
    else node.isolate();
    return `${node.name} is away`;
  },
  async remove({ plane, ledger }, vm) {
    ledger.allowAbsence(vm);
    return `delete ${vm}: ${outcomeOf(await plane.call('DELETE', `${VMS}/${vm}`))}`;
  },
};

/** Steps for a VM that does not exist; important steps are listed more than once. */
const WHEN_ABSENT: readonly StepName[] = [
  'create',
  'createWithUuid',
  'storeOldVm',
  'createUnadmitted',
  'restore',
  'restore',
  'restoreFromOtherVm',
  'restoreFromOtherVm',
];
const WHEN_PRESENT: readonly StepName[] = [
  'change',
  'removeFirmware',
  'replaceWithoutUuid',
  'applyManifest',
  'power',
  'power',
  'snapshot',
  'snapshot',
  'restore',
  'restore',
  'restoreFromOtherVm',
  'restoreWhileSnapshotted',
  'restoreWhileSnapshotted',
  'deleteSnapshotOrRestore',
  'disconnectNode',
  'remove',
  'remove',
];

/** Takes one step, in most cases with a kill of the server after a random number of writes. */
async function takeStep(walk: Walk): Promise<string> {
  const { plane, random } = walk;
  if (random.chance(0.5)) await bringNodesBack(plane);
  const vm = random.pick(NAMES);
  const isAbsent = (await plane.find('VirtualMachine', vm)) === undefined;
  const name = random.pick(isAbsent ? WHEN_ABSENT : WHEN_PRESENT);
  const step: Step = steps[name];
  if (random.chance(0.4)) return await step(walk, vm);
  const writes = random.between(0, MAX_WRITES);
  const cut = plane.cutAfter(writes);
  const run = async () => {
    const text = await step(walk, vm);
    await plane.settle();
    return text;
  };
  const running = run().catch((error: unknown) => `${name} ${vm}: ${String(error).split('\n', 1)[0]}`);
  const result = await Promise.race([running, cut]);
  const missing = name === 'create' && result === 'cut';
  // The plane would wait for an agent that starts while its node is isolated.
  const agents = random.chance(0.3) && plane.nodes.every(({ isIsolated }) => !isIsolated);
  await plane.restartServer({ agents });
  if (missing) await noteCreated(walk, vm);
  return `${result === 'cut' ? `${name} ${vm}` : result}, server killed after ${writes} writes`;
}

async function bringNodesBack(plane: VmPlane): Promise<void> {
  for (const { name } of plane.nodes) await plane.reviveNode(name);
}

/** Enters the UUID of a VM whose create got no answer. */
async function noteCreated({ plane, ledger }: Walk, vm: string): Promise<void> {
  const existing = await plane.find('VirtualMachine', vm);
  if (existing !== undefined) ledger.decide(vm, uuidOf(existing) ?? '');
}

async function isBusy({ plane }: Walk): Promise<boolean> {
  const restores = await plane.list('VirtualMachineRestore');
  const snapshots = await plane.list('VirtualMachineSnapshot');
  const vms = await plane.list('VirtualMachine');
  return (
    restores.some((restore) => !isRestoreFinished(restore)) ||
    snapshots.some(({ status }) => status?.phase !== 'Succeeded' && status?.phase !== 'Failed') ||
    vms.some(({ metadata }) => metadata.deletionTimestamp !== undefined)
  );
}

async function checkVms({ plane, ledger, taken }: Walk): Promise<void> {
  const restores = (await plane.list('VirtualMachineRestore')).filter((restore) => !isRestoreFinished(restore));
  const vms = await plane.list('VirtualMachine');
  for (const vm of NAMES) {
    const existing = vms.find(({ metadata }) => metadata.name === vm);
    const isRestored = restores.some(({ spec }) => spec.target.name === vm);
    const open = isRestored || existing?.metadata.deletionTimestamp !== undefined;
    ledger.check(vm, existing === undefined ? undefined : (uuidOf(existing) ?? 'none'), { open });
  }
  const staying = vms.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  for (const vm of staying) checkDuplicate(vm, staying);
  for (const { metadata, status } of await plane.list('VirtualMachineSnapshot')) {
    if (status?.phase !== 'Succeeded' || taken.has(metadata.name)) continue;
    const content = await plane.get('VirtualMachineSnapshotContent', status.virtualMachineSnapshotContentName);
    const vm = content.spec.source.virtualMachine;
    taken.set(metadata.name, { vm: vm.metadata.name, uuid: uuidOf(vm) ?? '' });
  }
}

/** Asserts that VMs with the same UUID have the condition, and no others. */
function checkDuplicate(vm: Loose, vms: readonly Loose[]): void {
  const own = uuidOf(vm)?.toLowerCase();
  const duplicates = vms.filter((other) => other !== vm && uuidOf(other)?.toLowerCase() === own);
  const isReported = vm.status?.conditions?.some(({ type }: Loose) => type === 'DuplicateFirmwareUUID') === true;
  assert.equal(isReported, duplicates.length > 0, `${vm.metadata.name} has ${duplicates.length} duplicates`);
}

/** Asserts, with all nodes back, that everything that was requested is complete. */
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
    for (const { machine } of plane.startsOf(vm)) assert.ok(ledger.hadUuid(vm, machine.firmware.uuid));
  }
}

test('no VM loses its uuid or gets one that was not chosen for it', async (t) => {
  const random = createSeededRandom(t);
  const plane = await startVmPlane(t);
  const walk: Walk = { plane, random, ledger: new Ledger(), taken: new Map() };
  for (const vm of NAMES) await plane.apply(aClaim(`${vm}-data`, { storageClassName: STORAGE[vm] }));
  const done: string[] = [];
  try {
    // Some snapshots to restore from the beginning.
    for (const make of [steps.create, steps.snapshot]) {
      for (const vm of NAMES.slice(0, 2)) done.push(await make(walk, vm));
      await plane.advance(SHORT_WAIT_MS);
      await checkVms(walk);
    }
    for (let step = 0; step < STEPS; step++) {
      done.push(await takeStep(walk));
      for (const { host } of plane.nodes) {
        host.holdCopies = false;
        host.finishCopies();
      }
      await plane.advance(SHORT_WAIT_MS);
      if (await isBusy(walk)) await plane.advance(LONGEST_WAIT_MS);
      await checkVms(walk);
    }
    await bringNodesBack(plane);
    await plane.advance(LONGEST_WAIT_MS);
    await checkVms(walk);
    const restores = await plane.list('VirtualMachineRestore');
    const complete = restores.filter(({ status }) => status?.complete === true).length;
    t.diagnostic(`${walk.taken.size} snapshots, ${restores.length} restores of which ${complete} complete`);
    await verifyEnd(walk);
    await deleteEverything(plane);
  } catch (error) {
    throw new Error(`${(error as Error).message}\nafter:\n${done.join('\n')}`, { cause: error });
  }
});
