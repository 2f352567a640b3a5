import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  decideAvailability,
  decideRegistration,
  type ApiService,
  type RegistrationWorld,
} from '#engine/controllers/api-service.ts';
import type { Stored } from '#kube/meta.ts';

const LABEL = 'kube-aggregator.kubernetes.io/automanaged';
const SPEC = { group: 'golden.local', version: 'v1', groupPriorityMinimum: 1000, versionPriority: 100 };
const NAME = 'v1.golden.local';
const WANTED = { spec: SPEC, mode: 'true' } as const;

function anApiService(labels: Record<string, string>, spec: ApiService['spec'] = SPEC): Stored<ApiService> {
  const metadata = { name: NAME, uid: 'u', resourceVersion: '1', creationTimestamp: 'now', labels };
  return { apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService', metadata, spec };
}

const cases: Record<string, { world: Omit<RegistrationWorld, 'name'>; want: string[] }> = {
  'creates a missing APIService': { world: { wanted: WANTED, present: undefined }, want: ['create'] },
  'keeps a correct APIService': { world: { wanted: WANTED, present: anApiService({ [LABEL]: 'true' }) }, want: [] },
  'corrects a changed spec': {
    world: { wanted: WANTED, present: anApiService({ [LABEL]: 'true' }, { ...SPEC, caBundle: 'x' }) },
    want: ['patch'],
  },
  'corrects the label': {
    world: { wanted: WANTED, present: anApiService({ [LABEL]: 'onstart' }) },
    want: ['patch'],
  },
  'deletes the APIService of a version that is no longer served': {
    world: { wanted: undefined, present: anApiService({ [LABEL]: 'true' }) },
    want: ['delete'],
  },
  'does not change an APIService without the label': {
    world: { wanted: WANTED, present: anApiService({}, { ...SPEC, service: { name: 'x', namespace: 'y' } }) },
    want: [],
  },
  'does nothing if the APIService neither exists nor is served': {
    world: { wanted: undefined, present: undefined },
    want: [],
  },
};
for (const [sentence, { world, want }] of Object.entries(cases)) {
  test(`registration ${sentence}`, () => {
    const { changes } = decideRegistration({ name: NAME, ...world });
    assert.deepEqual(
      changes.map((change) => change.do),
      want,
    );
  });
}

test('removes unexpected fields when it corrects a spec', () => {
  const present = anApiService({ [LABEL]: 'true' }, { ...SPEC, caBundle: 'x' });
  const [change] = decideRegistration({ name: NAME, wanted: WANTED, present }).changes;
  assert.deepEqual(change?.do === 'patch' && change.patch.body, {
    metadata: { labels: { [LABEL]: 'true' } },
    spec: { ...SPEC, caBundle: null },
  });
});

test('keeps the transition time while the status stays the same, and checks a failed service sooner', () => {
  const failed = { status: 'False', reason: 'ServiceNotFound', message: 'gone' } as const;
  const first = decideAvailability({ apiService: anApiService({}), found: failed, now: 't1' });
  assert.deepEqual(first.status, {
    conditions: [{ type: 'Available', ...failed, lastTransitionTime: 't1' }],
  });
  const apiService = { ...anApiService({}), status: first.status as ApiService['status'] } as Stored<ApiService>;
  const other = { ...failed, message: 'still gone' };
  const second = decideAvailability({ apiService, found: other, now: 't2' });
  assert.deepEqual(second.status, {
    conditions: [{ type: 'Available', ...other, lastTransitionTime: 't1', observedGeneration: undefined }],
  });
  const passed = decideAvailability({
    apiService,
    found: { status: 'True', reason: 'Passed', message: 'all checks passed' },
    now: 't3',
  });
  assert.ok(passed.requeueAfterMs! > second.requeueAfterMs!);
});
