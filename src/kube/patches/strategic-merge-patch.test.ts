import assert from 'node:assert/strict';
import test from 'node:test';
import type { Schema } from '#kube/schema.ts';
import { applyStrategicMergePatch } from '#kube/patches/strategic-merge-patch.ts';

const text: Schema = { type: 'string' };
const merge = { 'x-kubernetes-patch-strategy': 'merge' } as const;

/** The schema of a Pod, reduced to one field of each kind. */
const schema: Schema = {
  type: 'object',
  properties: {
    metadata: {
      type: 'object',
      properties: {
        labels: { type: 'object', additionalProperties: text },
        finalizers: { type: 'array', items: text, ...merge },
      },
    },
    spec: {
      type: 'object',
      properties: {
        containers: {
          type: 'array',
          ...merge,
          'x-kubernetes-patch-merge-key': 'name',
          items: {
            type: 'object',
            properties: {
              name: text,
              args: { type: 'array', items: text },
              ports: {
                type: 'array',
                ...merge,
                'x-kubernetes-patch-merge-key': 'port',
                items: { type: 'object' },
              },
            },
          },
        },
        volumes: {
          type: 'array',
          'x-kubernetes-patch-strategy': 'merge,retainKeys',
          'x-kubernetes-patch-merge-key': 'name',
          items: { type: 'object' },
        },
        strategy: { type: 'object', 'x-kubernetes-patch-strategy': 'retainKeys' },
        whole: { type: 'object', 'x-kubernetes-patch-strategy': 'replace' },
        keyless: { type: 'array', ...merge, items: { type: 'object' } },
      },
    },
  },
};

const containers = (...list: unknown[]) => ({ spec: { containers: list } });
const named = (...names: string[]) => names.map((name) => ({ name }));
const finalizers = (...list: string[]) => ({ metadata: { finalizers: list } });

interface Case {
  doc: object;
  patch: object;
  want: object;
}

const good: Record<string, Case> = {
  'merges maps, and null deletes a key': {
    doc: { metadata: { labels: { a: '1', b: '2' } } },
    patch: { metadata: { labels: { a: null, c: '3', d: null } } },
    want: { metadata: { labels: { b: '2', c: '3' } } },
  },
  'merges a list by its key': {
    doc: containers({ name: 'a', image: 'x', args: ['1'] }, { name: 'b' }),
    patch: containers({ name: 'a', image: 'y' }),
    want: containers({ name: 'a', image: 'y', args: ['1'] }, { name: 'b' }),
  },
  'puts a new item before those of the server': {
    doc: containers({ name: 'a' }, { name: 'b' }),
    patch: containers({ name: 'c', empty: null }),
    want: containers({ name: 'c' }, { name: 'a' }, { name: 'b' }),
  },
  'merges lists in lists': {
    doc: containers({ name: 'a', ports: [{ port: 80 }, { port: 81, proto: 'tcp' }] }),
    patch: containers({ name: 'a', ports: [{ port: 81, proto: 'udp' }] }),
    want: containers({ name: 'a', ports: [{ port: 80 }, { port: 81, proto: 'udp' }] }),
  },
  'merges a list by a numeric key': {
    doc: containers({ name: 'a', ports: [{ port: 1 }] }),
    patch: containers({ name: 'a', ports: [{ port: 1, x: 1 }] }),
    want: containers({ name: 'a', ports: [{ port: 1, x: 1 }] }),
  },
  'replaces an atomic list': {
    doc: containers({ name: 'a', args: ['1', '2'] }),
    patch: containers({ name: 'a', args: ['3'] }),
    want: containers({ name: 'a', args: ['3'] }),
  },
  'removes an item by $patch: delete': {
    doc: containers({ name: 'a' }, { name: 'b' }),
    patch: containers({ name: 'a', $patch: 'delete' }, { name: 'none', $patch: 'delete' }),
    want: containers({ name: 'b' }),
  },
  'replaces a list by $patch: replace': {
    doc: containers({ name: 'a' }, { name: 'b' }),
    patch: containers({ $patch: 'replace' }, { name: 'c' }),
    want: containers({ name: 'c' }),
  },
  'replaces a map by $patch: replace': {
    doc: { metadata: { labels: { a: '1' } } },
    patch: { metadata: { labels: { $patch: 'replace', b: '2' } } },
    want: { metadata: { labels: { b: '2' } } },
  },
  'empties a map by $patch: delete': {
    doc: { metadata: { labels: { a: '1' } }, spec: { x: 1 } },
    patch: { metadata: { $patch: 'delete' } },
    want: { metadata: {}, spec: { x: 1 } },
  },
  'leaves nothing of a directive for an absent field': {
    doc: { spec: {} },
    patch: { metadata: { $patch: 'delete' }, spec: { containers: [{ name: 'a', $patch: 'delete' }, { name: 'b' }] } },
    want: { spec: { containers: [{ name: 'b' }] } },
  },
  'merges a list of scalars without duplicates': {
    doc: finalizers('a', 'b'),
    patch: finalizers('b', 'c'),
    want: finalizers('a', 'b', 'c'),
  },
  'removes from a list of scalars': {
    doc: finalizers('a', 'b', 'c'),
    patch: { metadata: { '$deleteFromPrimitiveList/finalizers': ['b', 'x'] } },
    want: finalizers('a', 'c'),
  },
  'removes and adds in one patch': {
    doc: finalizers('a', 'b'),
    patch: {
      metadata: {
        '$deleteFromPrimitiveList/finalizers': ['a'],
        '$setElementOrder/finalizers': ['c', 'b'],
        finalizers: ['c'],
      },
    },
    want: finalizers('c', 'b'),
  },
  'ignores a removal from an absent list': {
    doc: { metadata: {} },
    patch: { metadata: { '$deleteFromPrimitiveList/finalizers': ['b'] } },
    want: { metadata: {} },
  },
  'orders by $setElementOrder alone': {
    doc: { spec: { containers: named('a', 'b', 'c') } },
    patch: { spec: { '$setElementOrder/containers': named('c', 'b', 'a') } },
    want: { spec: { containers: named('c', 'b', 'a') } },
  },
  'keeps the position of items that only the server has': {
    doc: { spec: { containers: named('s1', 'a', 's2', 'b', 's3') } },
    patch: { spec: { '$setElementOrder/containers': named('a', 'b') } },
    want: { spec: { containers: named('s1', 'a', 's2', 'b', 's3') } },
  },
  'orders new items among those of the server': {
    doc: { spec: { containers: named('a', 's', 'b') } },
    patch: { spec: { '$setElementOrder/containers': named('a', 'n', 'b'), containers: named('n') } },
    want: { spec: { containers: named('a', 'n', 's', 'b') } },
  },
  'deletes and orders in one patch': {
    doc: { spec: { containers: named('a', 'b', 'c') } },
    patch: {
      spec: {
        '$setElementOrder/containers': named('c', 'a'),
        containers: [{ name: 'b', $patch: 'delete' }],
      },
    },
    want: { spec: { containers: named('c', 'a') } },
  },
  'adds an absent list with an order': {
    doc: { spec: {} },
    patch: { spec: { '$setElementOrder/containers': named('a', 'b'), containers: named('a', 'b') } },
    want: { spec: { containers: named('a', 'b') } },
  },
  'deletes a list although an order is given': {
    doc: { spec: { containers: named('a') } },
    patch: { spec: { '$setElementOrder/containers': [], containers: null } },
    want: { spec: {} },
  },
  'keeps only the keys of $retainKeys': {
    doc: { spec: { strategy: { type: 'Rolling', rolling: { max: 1 } } } },
    patch: { spec: { strategy: { $retainKeys: ['type'], type: 'Recreate' } } },
    want: { spec: { strategy: { type: 'Recreate' } } },
  },
  'keeps only the keys of $retainKeys in an item': {
    doc: { spec: { volumes: [{ name: 'v', emptyDir: {} }] } },
    patch: { spec: { volumes: [{ name: 'v', $retainKeys: ['name', 'hostPath'], hostPath: { path: '/x' } }] } },
    want: { spec: { volumes: [{ name: 'v', hostPath: { path: '/x' } }] } },
  },
  'replaces a map with the strategy replace': {
    doc: { spec: { whole: { a: 1 } } },
    patch: { spec: { whole: { b: 2 } } },
    want: { spec: { whole: { b: 2 } } },
  },
  'merges unknown maps by key and replaces unknown lists': {
    doc: { unknown: { map: { a: 1, b: 2 }, list: [{ name: 'a' }] } },
    patch: { unknown: { map: { a: null, c: 3 }, list: [{ name: 'b' }] } },
    want: { unknown: { map: { b: 2, c: 3 }, list: [{ name: 'b' }] } },
  },
  'removes nulls and directives from added values': {
    doc: {},
    patch: { spec: { a: { b: null, c: { $patch: 'replace', d: 1 } }, $retainKeys: ['a'], '$setElementOrder/x': [] } },
    want: { spec: { a: {} } },
  },
  'replaces a value of another type': {
    doc: { spec: { containers: 'oops' } },
    patch: containers({ name: 'a' }),
    want: containers({ name: 'a' }),
  },
};

for (const [sentence, { doc, patch, want }] of Object.entries(good)) {
  test(sentence, () => {
    const before = JSON.stringify([doc, patch]);
    assert.deepEqual(applyStrategicMergePatch(doc, patch, schema), want);
    assert.equal(JSON.stringify([doc, patch]), before, 'the inputs are not changed');
  });
}

const bad: Record<string, { doc?: object; patch: unknown; code: number; message: string }> = {
  'an item without its merge key': {
    doc: containers({ name: 'a' }),
    patch: containers({ image: 'x', tags: ['b', null], n: { z: 1, y: true } }),
    code: 400,
    message: 'map: map[image:x n:map[y:true z:1] tags:[b <nil>]] does not contain declared merge key: name',
  },
  'a deletion without its merge key': {
    doc: containers({ name: 'a' }),
    patch: containers({ $patch: 'delete' }),
    code: 400,
    message: 'map: map[$patch:delete] does not contain declared merge key: name',
  },
  'a merge list of maps without a merge key': {
    doc: { spec: { keyless: [{ a: 1 }] } },
    patch: { spec: { keyless: [{ a: 2 }] } },
    code: 400,
    message: 'cannot merge lists without merge key for object',
  },
  'an unknown directive in a map': {
    doc: { metadata: { labels: {} } },
    patch: { metadata: { labels: { $patch: 'merge' } } },
    code: 400,
    message: 'unknown patch type: merge in map: map[$patch:merge]',
  },
  'a merge directive in a list': {
    doc: containers({ name: 'a' }),
    patch: containers({ name: 'a', $patch: 'merge' }),
    code: 400,
    message: 'merging lists cannot yet be specified in the patch',
  },
  'an unknown directive in a list': {
    doc: containers({ name: 'a' }),
    patch: containers({ name: 'a', $patch: 'x' }),
    code: 400,
    message: 'unknown patch type: x in map: map[$patch:x name:a]',
  },
  'keys that $retainKeys does not name': {
    doc: { spec: { strategy: {} } },
    patch: { spec: { strategy: { $retainKeys: ['a'], b: 1 } } },
    code: 400,
    message: 'invalid patch format of retainKeys',
  },
  'an order that differs from the patch': {
    doc: { spec: { containers: named('a') } },
    patch: { spec: { '$setElementOrder/containers': named('a', 'b'), containers: named('b', 'a') } },
    code: 400,
    message:
      "The order in patch list:\n[map[name:b] map[name:a]]\n doesn't match $setElementOrder list:\n[map[name:a] map[name:b]]\n",
  },
  'an order that is not a list': {
    doc: { spec: {} },
    patch: { spec: { '$setElementOrder/containers': {} } },
    code: 400,
    message: 'expected a []interface {}, but received a map[string]interface {}',
  },
  'an order without a list name': {
    doc: { spec: {} },
    patch: { spec: { $setElementOrder: [] } },
    code: 400,
    message: 'invalid patch format of setElementOrder list',
  },
  'a removal without a list name': {
    doc: { spec: {} },
    patch: { spec: { $deleteFromPrimitiveList: [] } },
    code: 400,
    message: 'invalid patch format of primitive list',
  },
  'lists of mixed types': {
    doc: finalizers('a'),
    patch: { metadata: { finalizers: [{ a: 1 }] } },
    code: 400,
    message: 'list element types are not identical: [a map[a:1]]',
  },
  'lists of lists': {
    doc: finalizers(),
    patch: { metadata: { finalizers: [['a']] } },
    code: 422,
    message: 'the server rejected our request due to an error in our request',
  },
  'a patch that is not a map': {
    patch: ['x'],
    code: 400,
    message: 'json: cannot unmarshal array into Go value of type map[string]interface {}',
  },
};

for (const [sentence, { doc = {}, patch, code, message }] of Object.entries(bad)) {
  test(`refuses ${sentence}`, () => {
    assert.throws(() => applyStrategicMergePatch(doc, patch, schema), { name: 'ApiError', code, message });
  });
}

test('ignores a key __proto__', () => {
  const patch: unknown = JSON.parse(
    '{"__proto__":{"evil":1},"spec":{"__proto__":{"evil":1},"new":{"__proto__":{"evil":1}},"$setElementOrder/__proto__":[]}}',
  );
  const result = applyStrategicMergePatch({ spec: {} }, patch, schema) as { spec: { new: object } };
  for (const object of [result, result.spec, result.spec.new]) {
    assert.equal(Object.getPrototypeOf(object), Object.prototype);
    assert.equal('evil' in object, false);
  }
});
