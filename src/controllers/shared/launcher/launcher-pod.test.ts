import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { DomainSpec } from '#api/domain/domain.ts';
import { buildLauncherPod, launcherPodName } from '#controllers/shared/launcher/launcher-pod.ts';
import {
  memoryOverheadBytes,
  launcherResources,
  type ResourcePolicy,
} from '#controllers/shared/launcher/launcher-resources.ts';
import { aClaim, aVmi, aVolume, aWorld, POD_NAME, UID, type VmiOverrides } from '#controllers/vmi/testing/vmi-world.ts';
import type { ClaimView } from '#controllers/shared/launcher/claim-views.ts';
import type { PodSpec } from '#kube/core-kinds.ts';

const MIB = 1024 * 1024;
const LONG = 'a-very-long-name-of-a-virtual-machine-that-nobody-can-type-twice.example';

function specOf(overrides: VmiOverrides, claims?: Record<string, ClaimView>): PodSpec {
  const vmi = aVmi(overrides);
  const views = claims === undefined ? aWorld({ vmi }).claims : new Map(Object.entries(claims));
  return buildLauncherPod(vmi, views).spec;
}

describe('the name of the launcher pod', () => {
  it('depends on the name and the uid of the instance', () => {
    assert.equal(launcherPodName(aVmi()), POD_NAME);
    assert.equal(launcherPodName(aVmi()), launcherPodName(aVmi({ meta: { resourceVersion: '2' } })));
    assert.notEqual(launcherPodName(aVmi()), launcherPodName(aVmi({ meta: { uid: 'another' } })));
  });
  it('fits into 63 characters and does not end with a dash or dot after truncation', () => {
    for (let length = 20; length <= LONG.length; length++) {
      const name = launcherPodName(aVmi({ name: LONG.slice(0, length) }));
      assert.ok(name.length <= 63, name);
      assert.match(name, /^virt-launcher-[a-z0-9.-]*[a-z0-9]-[a-z0-9]{5}$/);
    }
  });
});

describe('the launcher pod', () => {
  it('has its labels, and its instance as owner', () => {
    const meta = { labels: { team: 'a', 'kubevirt.io': 'mine' } };
    const { metadata } = buildLauncherPod(aVmi({ meta }), new Map());
    assert.deepEqual(metadata.labels, {
      team: 'a',
      'kubevirt.io': 'virt-launcher',
      'kubevirt.io/created-by': UID,
      'vm.kubevirt.io/name': 'db',
    });
    assert.equal(metadata.annotations?.['kubevirt.io/domain'], 'db');
    const [owner] = metadata.ownerReferences ?? [];
    assert.deepEqual(
      [owner?.kind, owner?.uid, owner?.controller, owner?.blockOwnerDeletion],
      ['VirtualMachineInstance', UID, true, true],
    );
  });

  it('is never restarted, has no token, and has a longer grace period than its guest', () => {
    const spec = specOf({ spec: { terminationGracePeriodSeconds: 100 } });
    assert.deepEqual(
      [spec.restartPolicy, spec.automountServiceAccountToken, spec.terminationGracePeriodSeconds],
      ['Never', false, 115],
    );
    assert.equal(specOf({}).terminationGracePeriodSeconds, 45);
  });

  it('has a container for the console, if the guest has a console', () => {
    const names = (overrides: VmiOverrides) => specOf(overrides).containers.map(({ name }) => name);
    assert.deepEqual(names({}), ['compute', 'guest-console-log']);
    assert.deepEqual(names({ spec: { domain: { devices: { autoattachSerialConsole: false } } } }), ['compute']);
  });

  it('requires a node with the machine type; the spec can add requirements but not remove them', () => {
    const nodeSelector = { disk: 'ssd', 'kubevirt.io/schedulable': 'false' };
    assert.deepEqual(specOf({ spec: { nodeSelector, domain: { machine: { type: 'q35' } } } }).nodeSelector, {
      disk: 'ssd',
      'machine-type.node.kubevirt.io/q35': 'true',
      'kubevirt.io/schedulable': 'true',
    });
  });

  it('takes over the scheduling fields of the spec and tolerates our nodes', () => {
    const overrides = { tolerations: [{ key: 'a' }], priorityClassName: 'p', schedulerName: 's', hostname: 'h' };
    const { tolerations, priorityClassName, schedulerName, hostname, ...rest } = specOf({ spec: overrides });
    const ours = { key: 'selfsame.io/vms-only', operator: 'Exists', effect: 'NoSchedule' };
    const wanted = { ...overrides, tolerations: [...overrides.tolerations, ours] };
    assert.deepEqual({ tolerations, priorityClassName, schedulerName, hostname }, wanted);
    assert.equal('affinity' in rest, false);
  });

  it('has a hostname in the subdomain of the spec', () => {
    const namesOf = (spec: VmiOverrides['spec']) => {
      const { hostname, subdomain } = specOf({ spec });
      return { hostname, subdomain };
    };
    assert.deepEqual(namesOf({ hostname: 'db-0', subdomain: 'db' }), { hostname: 'db-0', subdomain: 'db' });
    assert.deepEqual(namesOf({ subdomain: 'db' }), { hostname: 'db', subdomain: 'db' });
    assert.deepEqual(namesOf({}), { hostname: undefined, subdomain: undefined });
  });

  it('has the ports of the interfaces, with names that pods may have', () => {
    const ports = [
      { name: 'http', port: 80 },
      { name: 'http', port: 81 },
      { name: 'Not a port name', port: 53, protocol: 'UDP' as const },
      { port: 80 },
    ];
    const spec = { domain: { devices: { interfaces: [{ name: 'default', ports }] } } };
    assert.deepEqual(specOf({ spec }).containers[0]?.['ports'], [
      { name: 'http', containerPort: 80, protocol: 'TCP' },
      { containerPort: 81, protocol: 'TCP' },
      { containerPort: 53, protocol: 'UDP' },
    ]);
  });

  it('names the objects that become disks, so that its node may read them', () => {
    const { volumes, serviceAccountName } = specOf({
      spec: {
        volumes: [
          { name: 'settings', configMap: { name: 'c', optional: true, volumeLabel: 'x' } },
          { name: 'keys', secret: { secretName: 's' } },
          { name: 'robot', serviceAccount: { serviceAccountName: 'r' } },
          { name: 'seed', cloudInitNoCloud: { secretRef: { name: 'u' }, networkDataSecretRef: { name: 'n' } } },
          { name: 'self', downwardAPI: {} },
        ],
      },
    });
    assert.deepEqual(volumes, [
      { name: 'settings', configMap: { name: 'c', optional: true } },
      { name: 'keys', secret: { secretName: 's' } },
      { name: 'robot', configMap: { name: 'kube-root-ca.crt' } },
      { name: 'seed-udata', secret: { secretName: 'u' } },
      { name: 'seed-ndata', secret: { secretName: 'n' } },
    ]);
    assert.equal(serviceAccountName, 'r');
  });

  it('has the overhead only in its limits if it is overcommitted', () => {
    const resources = { overcommitGuestOverhead: true, limits: { memory: '512Mi' } };
    const [compute] = specOf({ spec: { domain: { memory: { guest: '512Mi' }, resources } } }).containers;
    assert.deepEqual(compute?.resources, {
      requests: { cpu: '100m', memory: '512Mi' },
      limits: { memory: '595Mi' },
    });
  });

  it('does not name claims that are only attached, or optional and missing', () => {
    const volumes = ['on', 'off', 'extra', 'none', 'late'].map((name) => ({
      name,
      persistentVolumeClaim: { claimName: name, hotpluggable: true },
    }));
    const optional = true;
    const disks = [
      { name: 'on' },
      { name: 'off', plugged: false },
      { name: 'extra', optional },
      { name: 'none', optional },
      { name: 'late', optional },
    ];
    const at = (node: string) => aVolume('pv', { 'selfsame.io/volume-node': node });
    const spec = specOf(
      { spec: { domain: { devices: { disks } }, volumes } },
      {
        on: { claim: aClaim('on'), volume: at('node-1') },
        off: { claim: aClaim('off'), volume: at('node-2') },
        extra: { claim: aClaim('extra') },
        late: { claim: aClaim('late', { metadata: { deletionTimestamp: '2030-01-01T00:00:00Z' } }) },
      },
    );
    assert.deepEqual(
      spec.volumes?.map(({ name }) => name),
      ['on', 'extra'],
    );
    assert.equal(JSON.stringify(spec.affinity).includes('node-2'), false);
    assert.equal(JSON.stringify(spec.affinity).includes('node-1'), true);
  });

  it('mounts file systems and attaches block volumes as devices', () => {
    const volumes = [
      { name: 'root', persistentVolumeClaim: { claimName: 'one' } },
      { name: 'data', persistentVolumeClaim: { claimName: 'two' } },
      { name: 'base', ephemeral: { persistentVolumeClaim: { claimName: 'three', readOnly: true } } },
      { name: 'seed', cloudInitNoCloud: { userData: 'x' } },
    ];
    const spec = specOf(
      { spec: { volumes } },
      {
        one: { claim: aClaim('one') },
        two: { claim: aClaim('two', { spec: { volumeMode: 'Block' } }) },
        three: { claim: aClaim('three') },
      },
    );
    assert.deepEqual(spec.volumes, [
      { name: 'root', persistentVolumeClaim: { claimName: 'one' } },
      { name: 'data', persistentVolumeClaim: { claimName: 'two' } },
      { name: 'base', persistentVolumeClaim: { claimName: 'three', readOnly: true } },
    ]);
    assert.deepEqual(
      spec.containers[0]?.volumeMounts?.map(({ name }) => name),
      ['root', 'base'],
    );
    assert.deepEqual(spec.containers[0]?.volumeDevices, [{ name: 'data', devicePath: '/dev/data' }]);
  });
});

describe('the location of the data', () => {
  const volumes = [{ name: 'root', persistentVolumeClaim: { claimName: 'one' } }];
  const onNode1 = { one: { claim: aClaim('one'), volume: aVolume('pv', { 'selfsame.io/volume-node': 'node-1' }) } };
  const within = (key: string, value: string) => ({ key, operator: 'In' as const, values: [value] });
  const onNode1Expression = within('kubernetes.io/hostname', 'node-1');
  const required = <T>(nodeSelectorTerms: T[]) => ({
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } },
  });

  it('is required of the node', () => {
    assert.deepEqual(
      specOf({ spec: { volumes } }, onNode1).affinity,
      required([{ matchExpressions: [onNode1Expression] }]),
    );
  });
  it('is added to each alternative of the affinity and keeps the rest', () => {
    const ssd = within('disk', 'ssd');
    const field = within('metadata.name', 'node-1');
    const podAntiAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'zone' }] };
    const affinity = {
      podAntiAffinity,
      ...required([{ matchExpressions: [ssd] }, { matchFields: [field] }]),
    };
    assert.deepEqual(specOf({ spec: { volumes, affinity } }, onNode1).affinity, {
      podAntiAffinity,
      ...required([
        { matchExpressions: [ssd, onNode1Expression] },
        { matchFields: [field], matchExpressions: [onNode1Expression] },
      ]),
    });
  });
  it('includes that of the state claim, which no container mounts', () => {
    const state = { claim: aClaim('state'), volume: aVolume('pv', { 'selfsame.io/volume-node': 'node-1' }) };
    const { affinity, volumes: named, containers } = buildLauncherPod(aVmi(), new Map(), { state }).spec;
    assert.deepEqual(affinity, required([{ matchExpressions: [onNode1Expression] }]));
    assert.deepEqual(named, [{ name: 'vm-state', persistentVolumeClaim: { claimName: 'state' } }]);
    assert.deepEqual(
      containers.flatMap(({ volumeMounts = [], volumeDevices = [] }) => [volumeMounts, volumeDevices]).flat(),
      [],
    );
  });
  it('is not required if all nodes can reach it', () => {
    const shared = { one: { claim: aClaim('one'), volume: aVolume('pv') } };
    assert.equal(specOf({ spec: { volumes } }, shared).affinity, undefined);
  });
});

type Resources = ReturnType<typeof launcherResources>;

describe('the resource requests', () => {
  const cases: Record<string, { domain: DomainSpec; policy?: ResourcePolicy; want: Resources }> = {
    'are the memory of the guest plus overhead, and a tenth of each CPU': {
      domain: { memory: { guest: '512Mi' }, cpu: { sockets: 2, cores: 2 } },
      want: { requests: { cpu: '400m', memory: '601Mi' } },
    },
    'contain all memory of the guest, even if the spec requests less': {
      domain: { memory: { guest: '200Gi' }, resources: { requests: { memory: '1Mi', cpu: '2' } } },
      want: { requests: { cpu: '2', memory: '205284Mi' } },
    },
    'are the memory of the spec if it requests more than the guest has': {
      domain: { memory: { guest: '512Mi' }, resources: { requests: { memory: '1Gi' } } },
      want: { requests: { cpu: '100m', memory: '1107Mi' } },
    },
    'are a part of the memory of the guest if the installation overcommits memory': {
      domain: { memory: { guest: '1Gi' }, resources: { requests: { memory: '1Mi' } } },
      policy: { limited: new Set(), memoryOvercommit: 200 },
      want: { requests: { cpu: '100m', memory: '596Mi' } },
    },
    'come with the limits that a quota demands': {
      domain: { memory: { guest: '512Mi' }, cpu: { sockets: 2 } },
      policy: { limited: new Set(['cpu', 'memory']), memoryOvercommit: 100 },
      want: { requests: { cpu: '200m', memory: '597Mi' }, limits: { cpu: '2', memory: '597Mi' } },
    },
    'come with the limits of the spec, even if a quota demands some': {
      domain: { resources: { limits: { memory: '512Mi', cpu: '1' } } },
      policy: { limited: new Set(['cpu', 'memory']), memoryOvercommit: 100 },
      want: { requests: { cpu: '1', memory: '595Mi' }, limits: { cpu: '1', memory: '595Mi' } },
    },
    'come with limits that include the overhead': {
      domain: { resources: { limits: { memory: '512Mi', cpu: '1' } } },
      want: { requests: { cpu: '1', memory: '595Mi' }, limits: { cpu: '1', memory: '595Mi' } },
    },
  };
  for (const [name, { domain, policy, want }] of Object.entries(cases)) {
    it(name, () => assert.deepEqual(launcherResources(domain, policy), want));
  }
  it('are set for every container, with limits where the guest has them', () => {
    const policy: ResourcePolicy = { limited: new Set(['cpu']), memoryOvercommit: 100 };
    const { containers } = buildLauncherPod(aVmi(), new Map(), { policy }).spec;
    assert.deepEqual(
      containers.map(({ name, resources }) => [name, resources?.limits]),
      [
        ['compute', { cpu: '1' }],
        ['guest-console-log', { cpu: '5m' }],
      ],
    );
    assert.deepEqual(containers[1]?.resources?.requests, { cpu: '5m', memory: '8Mi' });
  });
  it('equal the limits in all containers if they do so in the spec, which makes the pod Guaranteed', () => {
    const resources = { limits: { cpu: '1', memory: '128Mi' } };
    for (const container of specOf({ spec: { domain: { resources } } }).containers) {
      assert.deepEqual(container.resources?.requests, container.resources?.limits);
    }
  });
  it('are higher with a TPM and lower without a video card', () => {
    const plain = memoryOverheadBytes({}, 0);
    assert.equal(plain, 82 * MIB);
    assert.equal(memoryOverheadBytes({ devices: { autoattachGraphicsDevice: false } }, 0), plain - 16 * MIB);
    assert.equal(memoryOverheadBytes({ devices: { tpm: {} } }, 0), plain + 8 * MIB);
    assert.equal(memoryOverheadBytes({ devices: { tpm: { enabled: false } } }, 0), plain);
  });
});
