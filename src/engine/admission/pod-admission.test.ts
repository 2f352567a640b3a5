/** Tests the admission of new pods and nodes: priority, tolerations, taints. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { AdmissionAttributes, AdmissionOperation } from '#engine/admission/admission.ts';
import { taintNewNodes } from '#engine/admission/node-taints.ts';
import { tolerateLostNodes } from '#engine/admission/pod-tolerations.ts';
import { priorityAdmission, priorityClassValidation } from '#engine/admission/priority.ts';
import { encodeJson } from '#engine/encoding/media-types.ts';
import { nodes } from '#engine/registry/kinds/core/node.ts';
import { pods } from '#engine/registry/kinds/pod/pod.ts';
import { priorityClasses } from '#engine/registry/kinds/priority-class.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { openMemoryStore } from '#engine/store/testing/memory-store.ts';
import type { Store } from '#engine/store/store.ts';
import { ApiError } from '#kube/api-error.ts';
import type { KubeObject } from '#kube/meta.ts';

let store: Store;
before(async () => {
  store = await openMemoryStore();
});
after(() => store.close());

async function put(name: string, fields: Record<string, unknown>): Promise<void> {
  const object = { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name }, ...fields };
  const { collection } = priorityClasses;
  await store.put({ collection, id: name, expected: 0, encode: () => encodeJson(object) });
}

function attributesOf(
  resource: Resource,
  object: KubeObject,
  operation: AdmissionOperation = 'CREATE',
  subresource = '',
) {
  const name = object.metadata.name ?? '';
  return { resource, object, operation, subresource, name, namespace: 'default' } as AdmissionAttributes;
}

const pod = (spec: object): KubeObject => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec });

interface PriorityCase {
  readonly spec: object;
  readonly want?: object;
  readonly refused?: string;
}

const priorities: Record<string, PriorityCase> = {
  'a class': { spec: { priorityClassName: 'high' }, want: { priority: 1000, preemptionPolicy: 'Never' } },
  'a built-in class': {
    spec: { priorityClassName: 'system-node-critical' },
    want: { priority: 2_000_001_000, preemptionPolicy: 'PreemptLowerPriority' },
  },
  'a missing class': {
    spec: { priorityClassName: 'x' },
    refused: 'pods "p" is forbidden: no PriorityClass with name x was found',
  },
  'the default class': {
    spec: {},
    want: { priorityClassName: 'usual', priority: 7, preemptionPolicy: 'PreemptLowerPriority' },
  },
  'the same value as its class': {
    spec: { priorityClassName: 'high', priority: 1000 },
    want: { priority: 1000, preemptionPolicy: 'Never' },
  },
  'another value than its class': {
    spec: { priorityClassName: 'high', priority: 5 },
    refused:
      'pods "p" is forbidden: the integer value of priority (5) must not be provided in pod spec; priority admission controller computed 1000 from the given PriorityClass name',
  },
  'another policy than its class': {
    spec: { priorityClassName: 'high', preemptionPolicy: 'PreemptLowerPriority' },
    refused:
      'pods "p" is forbidden: the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; priority admission controller computed Never from the given PriorityClass name',
  },
};

test('priority: zero without a default class', () => {
  const object = pod({});
  void priorityAdmission(store)(attributesOf(pods, object));
  assert.deepEqual(object['spec'], { priority: 0, preemptionPolicy: 'PreemptLowerPriority' });
});

test('priority', async (t) => {
  await put('high', { value: 1000, preemptionPolicy: 'Never' });
  await put('usual', { value: 7, globalDefault: true });
  const admit = priorityAdmission(store);
  for (const [sentence, { spec, want, refused }] of Object.entries(priorities)) {
    await t.test(sentence, () => {
      const object = pod({ ...spec });
      const act = () => void admit(attributesOf(pods, object));
      if (refused !== undefined) {
        assert.throws(
          act,
          (error: unknown) => error instanceof ApiError && error.code === 403 && error.message === refused,
        );
        return;
      }
      act();
      assert.deepEqual(object['spec'], { ...spec, ...want });
    });
  }
  await t.test('an update is not changed', () => {
    const object = pod({ priorityClassName: 'x' });
    void admit(attributesOf(pods, object, 'UPDATE'));
    assert.deepEqual(object['spec'], { priorityClassName: 'x' });
  });
  await t.test('a second default class is refused', () => {
    const check = priorityClassValidation(store);
    const other = {
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name: 'other' },
      globalDefault: true,
    };
    const refused =
      'priorityclasses.scheduling.k8s.io "other" is forbidden: PriorityClass usual is already marked as default. Only one default can exist';
    assert.throws(() => void check(attributesOf(priorityClasses, other)), { message: refused });
    void check(attributesOf(priorityClasses, { ...other, metadata: { name: 'usual' } }, 'UPDATE'));
    void check(attributesOf(priorityClasses, { ...other, globalDefault: false }));
  });
});

const toleration = (key: string) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 });
const NOT_READY = toleration('node.kubernetes.io/not-ready');
const UNREACHABLE = toleration('node.kubernetes.io/unreachable');
const OTHER = { key: 'x', operator: 'Exists' };

const tolerations: Record<string, { has?: object[]; want: object[] }> = {
  'a pod without tolerations': { want: [NOT_READY, UNREACHABLE] },
  'a pod with another toleration': { has: [OTHER], want: [OTHER, NOT_READY, UNREACHABLE] },
  'a pod with one of the tolerations': {
    has: [{ ...UNREACHABLE, tolerationSeconds: 5 }],
    want: [{ ...UNREACHABLE, tolerationSeconds: 5 }, NOT_READY],
  },
  'a pod that tolerates everything': { has: [{ operator: 'Exists' }], want: [{ operator: 'Exists' }] },
  'a pod that tolerates another effect': {
    has: [{ operator: 'Exists', effect: 'NoSchedule' }],
    want: [{ operator: 'Exists', effect: 'NoSchedule' }, NOT_READY, UNREACHABLE],
  },
};

for (const [sentence, { has, want }] of Object.entries(tolerations)) {
  test(`tolerations: ${sentence}`, () => {
    const object = pod({ tolerations: has });
    void tolerateLostNodes(attributesOf(pods, object));
    assert.deepEqual((object['spec'] as { tolerations: object[] }).tolerations, want);
    void tolerateLostNodes(attributesOf(pods, object, 'UPDATE'));
    assert.deepEqual((object['spec'] as { tolerations: object[] }).tolerations, want, 'admission must be idempotent');
  });
}

const TAINT = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };

const taints: Record<string, { spec?: object; operation?: AdmissionOperation; want: object | undefined }> = {
  'a new node': { want: { taints: [TAINT] } },
  'a new node with other taints': {
    spec: { taints: [{ ...TAINT, key: 'x' }] },
    want: { taints: [{ ...TAINT, key: 'x' }, TAINT] },
  },
  'a new node with the taint': { spec: { taints: [TAINT] }, want: { taints: [TAINT] } },
  'an update of a node': { operation: 'UPDATE', want: undefined },
};

for (const [sentence, { spec, operation, want }] of Object.entries(taints)) {
  test(`taints: ${sentence}`, () => {
    const object: KubeObject = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' }, spec };
    void taintNewNodes(attributesOf(nodes, object, operation));
    assert.deepEqual(object['spec'], want);
  });
}
