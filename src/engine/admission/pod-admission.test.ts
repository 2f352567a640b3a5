/** What is filled in or refused of new pods and nodes: priority, tolerations, taints. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { AdmissionAttributes, Operation } from '#engine/admission/admission.ts';
import { taintNewNodes } from '#engine/admission/node-taints.ts';
import { tolerateLostNodes } from '#engine/admission/pod-tolerations.ts';
import { priorityAdmission, priorityClassValidation } from '#engine/admission/priority.ts';
import { encodeJson } from '#engine/codec.ts';
import { nodes } from '#engine/registry/kinds/node.ts';
import { pods } from '#engine/registry/kinds/pod/pod.ts';
import { priorityClasses } from '#engine/registry/kinds/priority-class.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { openMemoryStore } from '#engine/store/open-store.ts';
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

function asked(resource: Resource, object: KubeObject, operation: Operation = 'CREATE', subresource = '') {
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
  'a class that is built in': {
    spec: { priorityClassName: 'system-node-critical' },
    want: { priority: 2_000_001_000, preemptionPolicy: 'PreemptLowerPriority' },
  },
  'a class that is not there': {
    spec: { priorityClassName: 'x' },
    refused: 'pods "p" is forbidden: no PriorityClass with name x was found',
  },
  'the default class': {
    spec: {},
    want: { priorityClassName: 'usual', priority: 7, preemptionPolicy: 'PreemptLowerPriority' },
  },
  'the same number as its class': {
    spec: { priorityClassName: 'high', priority: 1000 },
    want: { priority: 1000, preemptionPolicy: 'Never' },
  },
  'another number than its class': {
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

test('priority: none without a default class', () => {
  const object = pod({});
  void priorityAdmission(store)(asked(pods, object));
  assert.deepEqual(object['spec'], { priority: 0, preemptionPolicy: 'PreemptLowerPriority' });
});

test('priority', async (t) => {
  await put('high', { value: 1000, preemptionPolicy: 'Never' });
  await put('usual', { value: 7, globalDefault: true });
  const admit = priorityAdmission(store);
  for (const [sentence, { spec, want, refused }] of Object.entries(priorities)) {
    await t.test(sentence, () => {
      const object = pod({ ...spec });
      const act = () => void admit(asked(pods, object));
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
  await t.test('an update is left alone', () => {
    const object = pod({ priorityClassName: 'x' });
    void admit(asked(pods, object, 'UPDATE'));
    assert.deepEqual(object['spec'], { priorityClassName: 'x' });
  });
  await t.test('there is one default', () => {
    const check = priorityClassValidation(store);
    const other = {
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name: 'other' },
      globalDefault: true,
    };
    const refused =
      'priorityclasses.scheduling.k8s.io "other" is forbidden: PriorityClass usual is already marked as default. Only one default can exist';
    assert.throws(() => void check(asked(priorityClasses, other)), { message: refused });
    void check(asked(priorityClasses, { ...other, metadata: { name: 'usual' } }, 'UPDATE'));
    void check(asked(priorityClasses, { ...other, globalDefault: false }));
  });
});

const toleration = (key: string) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 });
const NOT_READY = toleration('node.kubernetes.io/not-ready');
const UNREACHABLE = toleration('node.kubernetes.io/unreachable');
const OTHER = { key: 'x', operator: 'Exists' };

const tolerations: Record<string, { has?: object[]; want: object[] }> = {
  'none of its own': { want: [NOT_READY, UNREACHABLE] },
  'behind its own': { has: [OTHER], want: [OTHER, NOT_READY, UNREACHABLE] },
  'its own word on one of them': {
    has: [{ ...UNREACHABLE, tolerationSeconds: 5 }],
    want: [{ ...UNREACHABLE, tolerationSeconds: 5 }, NOT_READY],
  },
  'everything is tolerated': { has: [{ operator: 'Exists' }], want: [{ operator: 'Exists' }] },
  'another effect does not count': {
    has: [{ operator: 'Exists', effect: 'NoSchedule' }],
    want: [{ operator: 'Exists', effect: 'NoSchedule' }, NOT_READY, UNREACHABLE],
  },
};

for (const [sentence, { has, want }] of Object.entries(tolerations)) {
  test(`tolerations: ${sentence}`, () => {
    const object = pod({ tolerations: has });
    void tolerateLostNodes(asked(pods, object));
    assert.deepEqual((object['spec'] as { tolerations: object[] }).tolerations, want);
    void tolerateLostNodes(asked(pods, object, 'UPDATE'));
    assert.deepEqual((object['spec'] as { tolerations: object[] }).tolerations, want, 'once is enough');
  });
}

const TAINT = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };

const taints: Record<string, { spec?: object; operation?: Operation; want: object | undefined }> = {
  'a new node': { want: { taints: [TAINT] } },
  'with taints of its own': {
    spec: { taints: [{ ...TAINT, key: 'x' }] },
    want: { taints: [{ ...TAINT, key: 'x' }, TAINT] },
  },
  'that has it already': { spec: { taints: [TAINT] }, want: { taints: [TAINT] } },
  'not on a change': { operation: 'UPDATE', want: undefined },
};

for (const [sentence, { spec, operation, want }] of Object.entries(taints)) {
  test(`taints: ${sentence}`, () => {
    const object: KubeObject = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' }, spec };
    void taintNewNodes(asked(nodes, object, operation));
    assert.deepEqual(object['spec'], want);
  });
}
