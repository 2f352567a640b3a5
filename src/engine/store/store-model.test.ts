/** Runs random operations on a store and compares it with a naive model after each step. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { RevisionGoneError } from '#engine/store/store.ts';
import type { Store } from '#engine/store/store.ts';
import { describeListing, StoreModel } from '#engine/store/testing/model.ts';
import type { ModelEvent } from '#engine/store/testing/model.ts';
import { memoryBed, sqliteBed } from '#engine/store/testing/test-bed.ts';
import type { TestBed } from '#engine/store/testing/test-bed.ts';

const OPTIONS = { maxHistoryEvents: 16, maxHistoryBytes: 200 };

const collection = fc.constantFrom('pods', 'nodes');
const id = fc.constantFrom('a/1', 'a/2', 'b/1', 'b/2', 'b/3', 'c');
const prefix = fc.constantFrom('', 'a/', 'b/', 'x/');
/** A position between the oldest kept revision and the newest, or slightly before. */
const place = fc.double({ min: -0.2, max: 1, noNaN: true });
const text = fc.string({ maxLength: 12 });

const change = fc.record({ type: fc.constantFrom('put', 'put', 'delete'), collection, id, text });
const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('write'), changes: fc.array(change, { maxLength: 6 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('list'),
      collection,
      place,
      range: fc.record({ prefix, after: id, limit: fc.integer({ min: 1, max: 4 }) }, { requiredKeys: [] }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('watch'), collection, prefix, place }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart') }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;

interface Watch {
  readonly collection: string;
  readonly prefix: string;
  readonly since: number;
  readonly seen: string[];
}

class ModelRun {
  readonly #bed: TestBed;
  readonly #model = new StoreModel();
  #store!: Store;
  #watches: Watch[] = [];

  constructor(bed: TestBed) {
    this.#bed = bed;
  }

  async run(steps: readonly Step[]): Promise<void> {
    this.#store = await this.#bed.open(OPTIONS);
    for (const one of [...steps, { kind: 'restart' } as const]) {
      await this.#do(one);
      this.#compare();
    }
  }

  async #do(one: Step | { kind: 'restart' }): Promise<void> {
    if ('changes' in one) await this.#write(one.changes);
    else if ('range' in one) this.#list(one.collection, this.#revisionAt(one.place), one.range);
    else if ('prefix' in one) this.#watch(one.collection, one.prefix, this.#revisionAt(one.place));
    else await this.#restart();
  }

  /** Submits all writes at once: later ones build on those in flight. */
  async #write(changes: readonly Change[]): Promise<void> {
    const done = [];
    for (const { type, collection, id, text } of changes) {
      const current = this.#store.latest(collection, id);
      const known = this.#model.stateAt(Infinity, collection).get(id);
      assert.equal(current?.revision, known?.revision);
      if (type === 'delete' && !current) continue;
      const write = { collection, id, expected: current?.revision ?? 0, encode: () => Buffer.from(text) };
      const kind = type === 'put' ? 'put' : 'delete';
      this.#model.record(kind, collection, id, this.#model.revision + 1, text);
      done.push(this.#store[kind](write));
    }
    await Promise.all(done);
  }

  #list(collection: string, atRevision: number, range: object): void {
    const list = (): unknown => describeListing(this.#store.list(collection, { ...range, atRevision }));
    if (atRevision < this.#store.compactedRevision) assert.throws(list, RevisionGoneError);
    else assert.deepEqual(list(), this.#model.list(collection, { ...range, atRevision }));
    assert.deepEqual(describeListing(this.#store.list(collection, range)), this.#model.list(collection, range));
  }

  #watch(collection: string, prefix: string, since: number): void {
    const seen: string[] = [];
    const watch = (): unknown =>
      this.#store.watch({ collection, prefix, since }, (events) => {
        for (const { type, entry, previous } of events) {
          seen.push(`${type} ${entry.id}@${entry.revision} ${entry.bytes.toString()} was ${previous?.revision}`);
        }
      });
    if (since < this.#store.compactedRevision) assert.throws(watch, RevisionGoneError);
    else {
      watch();
      this.#watches.push({ collection, prefix, since, seen });
    }
  }

  /** Reopens the store. Watches continue after the last event that they saw. */
  async #restart(): Promise<void> {
    const { compactedRevision } = this.#store;
    this.#store = await this.#bed.open(OPTIONS);
    assert.equal(this.#store.compactedRevision, compactedRevision);
    const watches = this.#watches;
    this.#watches = [];
    for (const { collection, prefix, since } of watches) {
      const last = this.#model.eventsAfter(since, collection, prefix).at(-1)?.revision ?? since;
      this.#watch(collection, prefix, last);
    }
  }

  #compare(): void {
    assert.equal(this.#store.revision, this.#model.revision);
    const kept = this.#model.events.filter(({ revision }) => revision > this.#store.compactedRevision);
    assert.ok(kept.length <= OPTIONS.maxHistoryEvents);
    for (const { collection, prefix, since, seen } of this.#watches) {
      assert.deepEqual(seen, this.#model.eventsAfter(since, collection, prefix).map(describeEvent));
    }
    for (const collection of ['pods', 'nodes']) {
      assert.equal(this.#store.count(collection), this.#model.stateAt(Infinity, collection).size);
    }
  }

  #revisionAt(where: number): number {
    const { compactedRevision, revision } = this.#store;
    return Math.max(0, Math.round(compactedRevision + where * (revision - compactedRevision)));
  }
}

function describeEvent({ type, id, revision, text, previous }: ModelEvent): string {
  return `${type} ${id}@${revision} ${text} was ${previous}`;
}

async function compareWithModel(createBed: () => TestBed, numRuns: number, maxLength: number): Promise<void> {
  const property = fc.asyncProperty(fc.array(step, { minLength: 4, maxLength, size: 'max' }), async (steps) => {
    const bed = createBed();
    try {
      await new ModelRun(bed).run(steps);
    } finally {
      await bed.remove();
    }
  });
  await fc.assert(property, { numRuns });
}

test('a memory store behaves like the model', () => compareWithModel(memoryBed, 150, 60));
test('an SQLite store behaves like the model', () => compareWithModel(sqliteBed, 8, 40));
