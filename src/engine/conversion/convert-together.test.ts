/** Tests concurrent readers that wait for the same conversions, and failures and cancellations among them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConversionWebhook } from '#engine/conversion/conversion-webhook.ts';
import { ConvertedForm } from '#engine/conversion/converted-form.ts';
import { FORM_SLICE } from '#engine/registry/stored-form.ts';
import { compileSchema } from '#engine/registry/structural/compile.ts';
import type { Entry } from '#engine/store/store.ts';
import { raceSignal } from '#lib/race-signal.ts';
import type { KubeObject } from '#kube/meta.ts';

interface Ask {
  readonly names: readonly (string | undefined)[];
  answer(): void;
  fail(): void;
}

/** A webhook that responds on demand. */
function scene() {
  const asks: Ask[] = [];
  const webhook = {
    async convert(objects: readonly KubeObject[], apiVersion: string, signal: AbortSignal): Promise<KubeObject[]> {
      const { promise, resolve, reject } = Promise.withResolvers<KubeObject[]>();
      asks.push({
        names: objects.map(({ metadata }) => metadata.name),
        answer: () => resolve(objects.map((object) => ({ ...object, apiVersion }))),
        fail: () => reject(new Error('broken')),
      });
      return raceSignal(promise, signal);
    },
  } as unknown as ConversionWebhook;
  const schemaOf = () => compileSchema({ type: 'object' });
  const form = new ConvertedForm({ group: 'g.io', version: 'v2', storageVersion: 'v1', since: 0, schemaOf, webhook });
  const readers = Array.from({ length: 3 }, () => new AbortController());
  const prepare = (reader: number, ...entries: Entry[]) => form.prepare(entries, () => readers[reader]!.signal)!;
  return { asks, form, readers, prepare };
}

function entry(name: string): Entry {
  const object = { apiVersion: 'g.io/v1', kind: 'A', metadata: { name } };
  return { id: name, revision: 1, bytes: Buffer.from(JSON.stringify(object)) } as Entry;
}

const settle = () => new Promise((resolve) => setImmediate(resolve));
const asked = (asks: readonly Ask[]) => asks.map(({ names }) => names);

test('an object is converted once for all readers', async () => {
  const { asks, form, prepare } = scene();
  const [a, b] = [entry('a'), entry('b')];
  const all = Promise.all([prepare(0, a), prepare(1, a, b), prepare(2, b)]);
  for (const ask of asks) ask.answer();
  await all;
  assert.deepEqual(asked(asks), [['a'], ['b']]);
  assert.match(form.bytes(b).toString(), /g\.io\/v2/);
});

test('a reader that leaves does not affect others', async () => {
  const { asks, readers, prepare } = scene();
  const a = entry('a');
  const left = assert.rejects(prepare(0, a), /context canceled/);
  const stays = prepare(1, a);
  readers[0]!.abort();
  await left;
  asks[0]!.answer();
  await stays;
  assert.equal(asks.length, 1);
});

test('when the last reader leaves, the conversion is cancelled, and a later reader starts it again', async () => {
  const { asks, readers, prepare } = scene();
  const a = entry('a');
  const left = assert.rejects(prepare(0, a), /context canceled/);
  readers[0]!.abort();
  await left;
  await settle();
  const retried = prepare(1, a);
  asks[1]!.answer();
  await retried;
});

test('an object whose batch failed because of another object is retried', async () => {
  const { asks, prepare } = scene();
  const [good, bad] = [entry('good'), entry('bad')];
  const failed = assert.rejects(prepare(0, good, bad), /broken/);
  const works = [prepare(1, good), prepare(2, good)];
  asks[0]!.fail();
  await failed;
  await settle();
  asks[1]!.answer();
  await Promise.all(works);
  assert.deepEqual(asked(asks), [['good', 'bad'], ['good']]);
});

test('an object that fails again is an error', async () => {
  const { asks, prepare } = scene();
  const a = entry('a');
  const all = [prepare(0, a), prepare(1, a), prepare(2, a)].map((one) => assert.rejects(one, /broken/));
  asks[0]!.fail();
  await settle();
  asks[1]!.fail();
  await Promise.all(all);
  assert.equal(asks.length, 2);
});

test('many objects are converted in batches', async () => {
  const { asks, prepare } = scene();
  const preparing = prepare(0, ...Array.from({ length: FORM_SLICE + 1 }, (_, i) => entry(`e${i}`)));
  asks[0]!.answer();
  await settle();
  await settle();
  asks[1]!.answer();
  await preparing;
  assert.deepEqual(
    asks.map(({ names }) => names.length),
    [FORM_SLICE, 1],
  );
});
