/** Tests the validation of updates. Pods have a test of their own. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configMaps } from '#engine/registry/kinds/core/config-map.ts';
import { controllerRevisions } from '#engine/registry/kinds/controller-revision.ts';
import { jobs } from '#engine/registry/kinds/job/job.ts';
import { changeErrors, type Fields } from '#engine/registry/kinds/testing/sample-kind.ts';
import { nodes } from '#engine/registry/kinds/core/node.ts';
import { persistentVolumeClaims } from '#engine/registry/kinds/volumes/persistent-volume-claim.ts';
import { persistentVolumes } from '#engine/registry/kinds/volumes/persistent-volume.ts';
import { priorityClasses } from '#engine/registry/kinds/priority-class.ts';
import { roleBindings } from '#engine/registry/kinds/access/rbac.ts';
import { secrets } from '#engine/registry/kinds/core/secret.ts';
import { storageClasses } from '#engine/registry/kinds/volumes/storage-class.ts';
import type { Resource } from '#engine/registry/resource.ts';

const FROZEN = 'Forbidden: field is immutable when `immutable` is set';
const CLAIM_FIXED =
  'spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims';
const aClaim = (storage: string, spec: Fields = {}, status?: Fields): Fields => ({
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } }, ...spec },
  ...(status === undefined ? {} : { status }),
});
const bound = { phase: 'Bound', capacity: { storage: '1Gi' } };
const manual = { manualSelector: true, selector: { matchLabels: { app: 'x' } } };
const aTemplate = (spec: Fields = {}) => ({
  metadata: { labels: { app: 'x' } },
  spec: { restartPolicy: 'Never', containers: [{ name: 'a', image: 'i:1' }], ...spec },
});
const aJob = (spec: Fields = {}): Fields => ({ spec: { ...manual, template: aTemplate(), ...spec } });

const cases: Record<string, [Resource, before: Fields, after: Fields, (string | RegExp)[]]> = {
  'a config map changes its data': [configMaps, { data: { a: '1' } }, { data: { a: '2' } }, []],
  'an immutable config map': [
    configMaps,
    { data: { a: '1' }, immutable: true },
    { data: { a: '2' } },
    [`immutable: ${FROZEN}`, `data: ${FROZEN}`],
  ],
  'an immutable config map gets a label': [
    configMaps,
    { data: { a: '1' }, immutable: true },
    { metadata: { labels: { a: 'b' } }, data: { a: '1' }, immutable: true },
    [],
  ],
  'a secret changes its type': [
    secrets,
    {},
    { type: 'example.com/x' },
    ['type: Invalid value: "example.com/x": field is immutable'],
  ],
  'an immutable secret changes its stringData': [
    secrets,
    { stringData: { a: '1' }, immutable: true },
    { stringData: { a: '2' }, immutable: true },
    [`data: ${FROZEN}`],
  ],
  'a claim is bound to a volume': [persistentVolumeClaims, aClaim('1Gi'), aClaim('1Gi', { volumeName: 'pv' }), []],
  'a claim is bound to another volume': [
    persistentVolumeClaims,
    aClaim('1Gi', { volumeName: 'a' }),
    aClaim('1Gi', { volumeName: 'b' }),
    [CLAIM_FIXED],
  ],
  'an unbound claim grows': [persistentVolumeClaims, aClaim('1Gi'), aClaim('2Gi'), [CLAIM_FIXED]],
  'a bound claim grows': [persistentVolumeClaims, aClaim('1Gi', {}, bound), aClaim('2Gi'), []],
  'a claim writes the same size differently': [persistentVolumeClaims, aClaim('1Gi'), aClaim('1024Mi'), []],
  'a bound claim shrinks': [
    persistentVolumeClaims,
    aClaim('2Gi', {}, bound),
    aClaim('1Gi'),
    ['spec.resources.requests.storage: Forbidden: field can not be less than status.capacity'],
  ],
  'a claim changes its mode': [
    persistentVolumeClaims,
    aClaim('1Gi'),
    aClaim('1Gi', { volumeMode: 'Block' }),
    [CLAIM_FIXED, 'volumeMode: Invalid value: "Block": field is immutable'],
  ],
  'a volume changes its source': [
    persistentVolumes,
    { spec: { hostPath: { path: '/a' } } },
    { spec: { hostPath: { path: '/b' } } },
    ['spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation'],
  ],
  'a volume changes its node affinity': [
    persistentVolumes,
    { spec: { nodeAffinity: { required: { nodeSelectorTerms: [] } } } },
    { spec: {} },
    ['nodeAffinity: Invalid value: null: field is immutable, except for updating from beta label to GA'],
  ],
  'a volume changes its claim and reclaim policy': [
    persistentVolumes,
    { spec: { hostPath: { path: '/a' } } },
    { spec: { hostPath: { path: '/a' }, claimRef: { name: 'c' }, persistentVolumeReclaimPolicy: 'Delete' } },
    [],
  ],
  'a storage class changes its parameters': [
    storageClasses,
    { provisioner: 'a', parameters: { x: '1' } },
    { provisioner: 'a', parameters: { x: '2' }, reclaimPolicy: 'Retain', allowVolumeExpansion: true },
    [
      'parameters: Invalid value: {"x":"2"}: field is immutable',
      'reclaimPolicy: Invalid value: "Retain": field is immutable',
    ],
  ],
  'a job changes its parallelism and is suspended': [
    jobs,
    aJob(),
    aJob({ parallelism: 2, completions: 1, suspend: true }),
    [],
  ],
  'a job changes its completions and template': [
    jobs,
    aJob(),
    aJob({ template: aTemplate({ nodeName: 'a' }), completions: 3 }),
    ['spec.completions: Invalid value: 3: field is immutable', /spec\.template: Invalid value: .*: field is immutable/],
  ],
  'a suspended job that never started changes its node selector': [
    jobs,
    aJob({ suspend: true }),
    aJob({ template: aTemplate({ nodeSelector: { disk: 'ssd' } }) }),
    [],
  ],
  'a binding changes its role': [
    roleBindings,
    { roleRef: { kind: 'Role', name: 'a' } },
    { roleRef: { kind: 'Role', name: 'b' } },
    [
      'roleRef: Invalid value: rbac.RoleRef{APIGroup:"rbac.authorization.k8s.io", Kind:"Role", Name:"b"}: cannot change roleRef',
    ],
  ],
  'a priority class changes its value': [
    priorityClasses,
    { value: 1 },
    { value: 2, preemptionPolicy: 'Never' },
    [
      'value: Forbidden: may not be changed in an update.',
      'preemptionPolicy: Invalid value: "Never": field is immutable',
    ],
  ],
  'a revision changes its data': [
    controllerRevisions,
    { data: { a: 1 }, revision: 1 },
    { data: { a: 2 }, revision: 2 },
    ['data: Invalid value: {"a":2}: field is immutable'],
  ],
  'a node changes its provider id': [
    nodes,
    { spec: { providerID: 'a' } },
    { spec: { unschedulable: true } },
    ['spec.providerID: Forbidden: node updates may not change providerID except from "" to valid'],
  ],
};

for (const [name, [resource, before, after, want]] of Object.entries(cases)) {
  test(`update: ${name}`, () => {
    const faults = changeErrors(resource, before, after);
    for (const [i, fault] of faults.entries()) {
      const wanted = want[i];
      if (wanted instanceof RegExp) assert.match(fault, wanted);
      else assert.equal(fault, wanted);
    }
    assert.equal(faults.length, want.length);
  });
}
