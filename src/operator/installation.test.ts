/** Tests the installed objects: names, order and permissions; and the status of the installation. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KubeVirt } from '#api/kubevirt/kind.ts';
import { claimPropertySetsOf, STORAGE_PROFILES } from '#api/storage/storage-profile.ts';
import { STORAGE_CLASSES } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { bootstrapObjects } from '#operator/bootstrap.ts';
import { idOf, type DesiredObject } from '#operator/desired.ts';
import { decideInstallation } from '#operator/installation-controller.ts';
import { ROLES, type PolicyRule } from '#kube/cluster-kinds.ts';
import { definitions } from '#operator/objects/definitions.ts';
import { maintainedObjects } from '#operator/objects/installation.ts';
import { installationStatus } from '#operator/status.ts';
import { MAX_CHANGES } from '#runtime/plan.ts';

const everything = [...bootstrapObjects(), ...definitions, ...maintainedObjects];
const rulesOf = ({ object }: DesiredObject) => (object['rules'] ?? []) as PolicyRule[];

test('no object occurs twice, and one plan creates all of them', () => {
  assert.equal(new Set(everything.map(idOf)).size, everything.length);
  const present = maintainedObjects.map((wanted) => [wanted, undefined] as const);
  const { changes } = decideInstallation({ kubevirt: undefined, present, policies: 'served', now: '' });
  assert.equal(changes.length, maintainedObjects.length);
  assert.ok(changes.length <= MAX_CHANGES);
});

test('every binding follows the role that it binds', () => {
  const seen = new Set<string>();
  for (const wanted of everything) {
    const { name } = (wanted.object['roleRef'] ?? {}) as { name?: string };
    if (name !== undefined) assert.ok(seen.has(name), `${idOf(wanted)} binds ${name}, which is not there yet`);
    if (wanted.type.kind.endsWith('Role')) seen.add(wanted.object.metadata.name ?? '');
  }
});

test('no role has wildcards or reads secrets, and only the operator writes roles', () => {
  for (const wanted of everything.filter(({ type }) => type.kind.endsWith('Role'))) {
    for (const { apiGroups = [], resources = [], verbs } of rulesOf(wanted)) {
      const words = [...apiGroups, ...resources, ...verbs];
      assert.ok(!words.includes('*') && !resources.includes('secrets'), idOf(wanted));
      const writesRoles =
        apiGroups.includes('rbac.authorization.k8s.io') && verbs.some((verb) => verb !== 'list' && verb !== 'watch');
      if (writesRoles) assert.match(idOf(wanted), /selfsame-operator$/);
    }
  }
});

test('the operator may bind and change only our own objects', () => {
  const role = everything.find(
    (wanted) => idOf(wanted) === 'clusterroles.rbac.authorization.k8s.io/selfsame:selfsame-operator',
  );
  assert.ok(role);
  const rules = rulesOf(role).filter(({ verbs }) => verbs.includes('patch') || verbs.includes('bind'));
  const unnamed = rules.filter(({ resourceNames }) => resourceNames === undefined);
  assert.deepEqual(
    unnamed.flatMap(({ resources }) => resources),
    ['events'],
  );
  assert.ok(!rules.some(({ resourceNames = [] }) => resourceNames.includes('cluster-admin')));
  // An empty list would mean all names.
  assert.ok(!rules.some(({ resourceNames }) => resourceNames?.length === 0));
  // Third-party definitions.
  for (const foreign of ['volumesnapshots.snapshot.storage.k8s.io', 'storageprofiles.cdi.kubevirt.io']) {
    assert.ok(!rules.some(({ resourceNames = [] }) => resourceNames.includes(foreign)));
  }
});

test('in its own namespace, the operator may bind and change only our own objects', () => {
  const role = everything.find(({ type, object }) => type === ROLES && object.metadata.name === 'selfsame-operator');
  assert.ok(role);
  const rules = rulesOf(role).filter(({ verbs }) => verbs.includes('patch') || verbs.includes('bind'));
  const names = rules.map(({ resources = [], resourceNames }) => [resources.join(), resourceNames] as const);
  const transition = ['convert-machine-type'];
  assert.deepEqual(
    names.filter(([resource]) => resource !== 'serviceaccounts'),
    [
      ['roles', transition],
      ['rolebindings', transition],
      ['roles', transition],
    ],
  );
});

test('definitions in groups of k8s.io have the approval annotation that servers require', () => {
  const foreign = definitions.filter(({ object }) => object.metadata.name?.endsWith('.k8s.io'));
  assert.equal(foreign.length, 3);
  for (const { object, once } of foreign) {
    assert.match(object.metadata.annotations?.['api-approved.kubernetes.io'] ?? '', /^https:\/\//);
    assert.equal(once, true);
  }
});

test('the definition of storage profiles is created once, for clusters without CDI', () => {
  const profiles = definitions.find(({ object }) => object.metadata.name === 'storageprofiles.cdi.kubevirt.io');
  assert.equal(profiles?.once, true);
  const { scope, versions } = profiles.object['spec'] as { scope: string; versions: { name: string }[] };
  assert.deepEqual([scope, versions.map(({ name }) => name)], ['Cluster', ['v1beta1']]);
});

test('each of our storage classes follows its profile, which has one combination of modes', () => {
  const ids = maintainedObjects.map(idOf);
  const classes = maintainedObjects.filter(({ type }) => type === STORAGE_CLASSES);
  const modes = classes.map((wanted) => {
    const { name = '' } = wanted.object.metadata;
    const profile = maintainedObjects.find(
      ({ type, object }) => type === STORAGE_PROFILES && object.metadata.name === name,
    );
    assert.ok(profile !== undefined && ids.indexOf(idOf(profile)) < ids.indexOf(idOf(wanted)), name);
    const sets = claimPropertySetsOf(profile.object);
    return [name, ...sets.map(({ volumeMode, accessModes }) => `${volumeMode} ${accessModes.join()}`)].join(': ');
  });
  assert.deepEqual(modes, [
    'local: Filesystem ReadWriteOnce',
    'shared: Filesystem ReadWriteMany',
    'local-block: Block ReadWriteOnce',
    'shared-block: Block ReadWriteMany',
  ]);
});

const NOW = '2026-01-01T00:00:00Z';

function aKubeVirt(status: KubeVirt['status'] = {}): Stored<KubeVirt> {
  const metadata = { name: 'kubevirt', uid: 'u', resourceVersion: '1', creationTimestamp: NOW };
  return { apiVersion: 'kubevirt.io/v1', kind: 'KubeVirt', metadata, status };
}

interface StatusCase {
  readonly phase?: 'Deployed';
  readonly failing?: boolean;
  /** The condition Available of our APIService. */
  readonly available?: 'True' | 'False';
  readonly want: { phase: string; conditions: string[]; message?: RegExp };
}

const HEALTHY = ['Available=True', 'Progressing=False', 'Degraded=False'];

const statuses: Record<string, StatusCase> = {
  'everything is healthy': { available: 'True', want: { phase: 'Deployed', conditions: HEALTHY } },
  'the service was not checked yet': { want: { phase: 'Deployed', conditions: HEALTHY } },
  'the service is not available': {
    available: 'False',
    want: {
      phase: 'Deployed',
      conditions: ['Available=True', 'Progressing=False', 'Degraded=True'],
      message: /^apiservices\.apiregistration\.k8s\.io\/v1\.subresources\.kubevirt\.io is not Available: gone$/,
    },
  },
  'the first installation fails': {
    failing: true,
    want: {
      phase: 'Deploying',
      conditions: ['Available=False', 'Progressing=True', 'Degraded=True'],
      message: /^cannot create: it is missing: forbidden$/,
    },
  },
  'a repair of a deployed installation fails': {
    failing: true,
    phase: 'Deployed',
    want: { phase: 'Deployed', conditions: ['Available=True', 'Progressing=True', 'Degraded=True'] },
  },
};

for (const [name, { phase, failing = false, available, want }] of Object.entries(statuses)) {
  test(name, () => {
    const wanted = maintainedObjects.find(({ type }) => type.kind === 'APIService');
    assert.ok(wanted);
    const conditions = available && [{ type: 'Available', status: available, message: 'gone' }];
    const service = { ...wanted.object, status: { conditions } } as unknown as Stored;
    const change = { do: 'create', type: wanted.type, object: wanted.object, why: 'it is missing' } as const;
    const failures = failing ? [{ change, error: new Error('forbidden') }] : [];
    const status = installationStatus({
      kubevirt: aKubeVirt({ phase }),
      present: [[wanted, service]],
      policies: 'served',
      failures,
      now: NOW,
    });
    assert.equal(status?.phase, want.phase);
    // protection-health.test.ts tests the fourth condition.
    assert.deepEqual(
      status.conditions?.slice(0, 3).map(({ type, status: holds }) => `${type}=${holds}`),
      want.conditions,
    );
    if (want.message !== undefined) assert.match(status.conditions?.[2]?.message ?? '', want.message);
  });
}

test('the same state gives the same status', () => {
  const first = installationStatus({ kubevirt: aKubeVirt(), present: [], policies: 'served', failures: [], now: NOW });
  const later = {
    kubevirt: aKubeVirt(first),
    present: [],
    policies: 'served',
    failures: [],
    now: '2026-01-02T00:00:00Z',
  } as const;
  assert.deepEqual(installationStatus(later), first);
});
