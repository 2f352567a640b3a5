/** Tests the validation of pods and of their updates. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changeErrors, newObjectErrors, type Fields } from '#engine/registry/kinds/testing/sample-kind.ts';
import { type Spec, aContainer, aPod } from '#engine/registry/kinds/pod/testing/sample-pod.ts';
import { pods } from '#engine/registry/kinds/pod/pod.ts';

const LABEL_TEXT =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

const CONFIG_KEY_TEXT =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const NODE_AFFINITY = 'spec.affinity.nodeAffinity';
const SCHEDULING = 'DuringSchedulingIgnoredDuringExecution';

const wrong: Record<string, [Fields, string[]]> = {
  'a valid pod': [aPod(), []],
  'no spec': [{}, ['spec.containers: Required value']],
  'no containers': [aPod({ containers: [] }), ['spec.containers: Required value']],
  'neither name nor image': [
    aPod({ containers: [{}] }),
    ['spec.containers[0].name: Required value', 'spec.containers[0].image: Required value'],
  ],
  'a bad name': [
    aPod({ containers: [aContainer({ name: 'A_b' })] }),
    [`spec.containers[0].name: Invalid value: "A_b": ${LABEL_TEXT}`],
  ],
  'a container and an init container with the same name': [
    aPod({ initContainers: [aContainer()] }),
    ['spec.initContainers[0].name: Duplicate value: "app"'],
  ],
  'environment variables with the same name are allowed': [
    aPod({ containers: [aContainer({ env: [{ name: 'A' }, { name: 'A', value: 'x' }] })] }),
    [],
  ],
  'a mount without its volume': [
    aPod({ containers: [aContainer({ volumeMounts: [{ name: 'data', mountPath: '/d' }] })] }),
    ['spec.containers[0].volumeMounts[0].name: Not found: "data"'],
  ],
  'two mounts at one path, one with a backstep': [
    aPod({
      volumes: [{ name: 'd', emptyDir: {} }],
      containers: [
        aContainer({
          volumeMounts: [
            { name: 'd', mountPath: '/d' },
            { name: 'd', mountPath: '/d', subPath: '../etc' },
          ],
        }),
      ],
    }),
    [
      'spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/d": must be unique',
      `spec.containers[0].volumeMounts[1].subPath: Invalid value: "../etc": must not contain '..'`,
    ],
  ],
  'a volume with two sources': [
    aPod({ volumes: [{ name: 'd', emptyDir: {}, hostPath: { path: '/d' } }] }),
    ['spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type'],
  ],
  'a port out of range and a bad port name': [
    aPod({ containers: [aContainer({ ports: [{ containerPort: 99999, name: '--' }] })] }),
    [
      'spec.containers[0].ports[0].name: Invalid value: "--": must contain at least one letter (a-z)',
      'spec.containers[0].ports[0].name: Invalid value: "--": must not contain consecutive hyphens',
      'spec.containers[0].ports[0].name: Invalid value: "--": must not begin or end with a hyphen',
      'spec.containers[0].ports[0].containerPort: Invalid value: 99999: must be between 1 and 65535, inclusive',
    ],
  ],
  'a request above its limit': [
    aPod({ containers: [aContainer({ resources: { limits: { cpu: '1' }, requests: { cpu: 2 } } })] }),
    ['spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
  ],
  'a device request without limit': [
    aPod({ containers: [aContainer({ resources: { requests: { 'devices.kubevirt.io/kvm': '1' } } })] }),
    ['spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources'],
  ],
  'invalid and negative quantities, and an unknown resource': [
    aPod({ containers: [aContainer({ resources: { requests: { cpu: 'lots', memory: '-1', disk: '1' } } })] }),
    [
      `spec.containers[0].resources.requests[cpu]: Invalid value: "lots": quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
      'spec.containers[0].resources.requests[memory]: Invalid value: "-1": must be greater than or equal to 0',
      'spec.containers[0].resources.requests[disk]: Invalid value: "disk": must be a standard resource type or fully qualified',
      'spec.containers[0].resources.requests[disk]: Invalid value: "disk": must be a standard resource for containers',
    ],
  ],
  'an unknown restart policy': [
    aPod({ restartPolicy: 'Sometimes' }),
    ['spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"'],
  ],
  'restart policies of main and init containers': [
    aPod({
      containers: [aContainer({ restartPolicy: 'Always' })],
      initContainers: [aContainer({ name: 'i', restartPolicy: 'Never' })],
    }),
    [
      'spec.initContainers[0].restartPolicy: Unsupported value: "Never": supported values: "Always"',
      'spec.containers[0].restartPolicy: Forbidden: may not be set for non-init containers',
    ],
  ],
  'probes of an init container, which only a sidecar may have': [
    aPod({
      initContainers: [
        aContainer({ name: 'i', readinessProbe: { tcpSocket: { port: 80 } } }),
        aContainer({ name: 's', readinessProbe: { tcpSocket: { port: 80 } }, restartPolicy: 'Always' }),
      ],
    }),
    [
      'spec.initContainers[0].readinessProbe: Forbidden: may not be set for init containers without restartPolicy=Always',
    ],
  ],
  'probes and hooks without handler, with two handlers or with an invalid port': [
    aPod({
      containers: [
        aContainer({
          livenessProbe: { exec: {}, successThreshold: 2 },
          readinessProbe: { httpGet: { port: 0 }, periodSeconds: -1, successThreshold: 2 },
          startupProbe: {},
          lifecycle: { preStop: { exec: { command: ['x'] }, sleep: { seconds: 1 } } },
        }),
      ],
    }),
    [
      'spec.containers[0].lifecycle.preStop.sleep: Forbidden: may not specify more than 1 handler type',
      'spec.containers[0].livenessProbe.exec.command: Required value',
      'spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1',
      'spec.containers[0].readinessProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive',
      'spec.containers[0].readinessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0',
      'spec.containers[0].startupProbe: Required value: must specify a handler type',
    ],
  ],
  'environment variables without source, with two sources and with an invalid key': [
    aPod({
      containers: [
        aContainer({
          env: [
            { name: 'A', valueFrom: {} },
            { name: 'B', valueFrom: { secretKeyRef: { name: 's', key: 'a b' } } },
          ],
          envFrom: [{}, { secretRef: {} }, { configMapRef: { name: 'c' }, secretRef: { name: 's' } }],
        }),
      ],
    }),
    [
      'spec.containers[0].env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`',
      `spec.containers[0].env[1].valueFrom.secretKeyRef.key: Invalid value: "a b": ${CONFIG_KEY_TEXT}`,
      'spec.containers[0].envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`',
      'spec.containers[0].envFrom[1].secretRef.name: Required value',
      'spec.containers[0].envFrom: Invalid value: "": may not have more than one field specified at a time',
    ],
  ],
  'volume sources without names': [
    aPod({
      volumes: [
        { name: 'a', configMap: {} },
        { name: 'b', secret: { items: [{ key: 'k', path: '../k', mode: 512 }] } },
        { name: 'c', hostPath: { path: '/a/../b', type: 'Disk' } },
        { name: 'd', nfs: { server: 's', path: 'data' } },
        { name: 'e', projected: { defaultMode: -1, sources: [{ secret: {} }] } },
        { name: 'f', ephemeral: {} },
      ],
    }),
    [
      'spec.volumes[2].hostPath.type: Unsupported value: "Disk": supported values: "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"',
      'spec.volumes[0].configMap.name: Required value',
      'spec.volumes[1].secret.secretName: Required value',
      `spec.volumes[1].secret.items[0].path: Invalid value: "../k": must not contain '..'`,
      'spec.volumes[1].secret.items[0].mode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive',
      `spec.volumes[2].hostPath.path: Invalid value: "/a/../b": must not contain '..'`,
      'spec.volumes[3].nfs.path: Invalid value: "data": must be an absolute path',
      'spec.volumes[4].projected.defaultMode: Invalid value: -1: must be a number between 0 and 0777 (octal), both inclusive',
      'spec.volumes[4].projected.sources[0].secret.name: Required value',
      'spec.volumes[5].ephemeral.volumeClaimTemplate: Required value',
    ],
  ],
  'block devices that are not claims or are duplicates': [
    aPod({
      volumes: [
        { name: 'd', emptyDir: {} },
        { name: 'p', persistentVolumeClaim: { claimName: 'c' } },
      ],
      containers: [
        aContainer({
          volumeDevices: [
            { name: 'd', devicePath: '/dev/../x' },
            { name: 'p', devicePath: '/dev/p' },
            { name: 'p', devicePath: '/dev/p' },
          ],
        }),
      ],
    }),
    [
      'spec.containers[0].volumeDevices[0].name: Invalid value: "d": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode',
      `spec.containers[0].volumeDevices[0].devicePath: Invalid value: "/dev/../x": can not contain backsteps ('..')`,
      'spec.containers[0].volumeDevices[2].name: Invalid value: "p": must be unique',
      'spec.containers[0].volumeDevices[2].devicePath: Invalid value: "/dev/p": must be unique',
    ],
  ],
  'host ports that differ from the container port or are duplicates': [
    aPod({
      hostNetwork: true,
      containers: [aContainer({ ports: [{ containerPort: 80, hostPort: 81 }, { containerPort: 81 }] })],
    }),
    [
      'spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true',
      'spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//81"',
    ],
  ],
  'affinity with invalid weights, fields and topology': [
    aPod({
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchFields: [{ key: 'spec.x', operator: 'Exists' }] }],
          },
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 101, preference: { matchExpressions: [{ key: 'cpus', operator: 'Gt', values: ['1', '2'] }] } },
          ],
        },
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: '' }],
          preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 0, podAffinityTerm: { topologyKey: 'zone' } }],
        },
      },
    }),
    [
      `${NODE_AFFINITY}.required${SCHEDULING}.nodeSelectorTerms[0].matchFields[0].operator: Invalid value: "Exists": not a valid selector operator`,
      `${NODE_AFFINITY}.required${SCHEDULING}.nodeSelectorTerms[0].matchFields[0].key: Invalid value: "spec.x": not a valid field selector key`,
      `${NODE_AFFINITY}.preferred${SCHEDULING}[0].weight: Invalid value: 101: must be in the range 1-100`,
      `${NODE_AFFINITY}.preferred${SCHEDULING}[0].preference.matchExpressions[0].values: Required value: must be specified single value when \`operator\` is 'Lt' or 'Gt'`,
      `spec.affinity.podAntiAffinity.required${SCHEDULING}[0].topologyKey: Required value: can not be empty`,
      `spec.affinity.podAntiAffinity.preferred${SCHEDULING}[0].weight: Invalid value: 0: must be in the range 1-100`,
    ],
  ],
  'duplicate scheduling gates, and gates with a node': [
    aPod({ nodeName: 'a', schedulingGates: [{ name: 'wait' }, { name: 'wait' }] }),
    [
      'spec.schedulingGates[1]: Duplicate value: "wait"',
      'spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared',
    ],
  ],
  'a toleration operator of a later version': [
    aPod({ tolerations: [{ key: 'a', operator: 'Gt', value: '1' }] }),
    ['spec.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists"'],
  ],
  'a toleration without key and operator': [
    aPod({ tolerations: [{ effect: 'NoSchedule' }] }),
    [
      'spec.tolerations[0].operator: Invalid value: "": operator must be Exists when `key` is empty, which means "match all values and all keys"',
    ],
  ],
};
for (const [name, [pod, want]] of Object.entries(wrong)) {
  test(`rules: ${name}`, () => assert.deepEqual(newObjectErrors(pods, pod), want));
}

const FIXED =
  'spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)';
const admitted = { serviceAccountName: 'default', priority: 0, preemptionPolicy: 'PreemptLowerPriority' };
const changes: Record<string, [before: Spec, after: Spec, string[]]> = {
  'nothing changes': [{}, {}, []],
  'a new image': [{}, { containers: [aContainer({ image: 'nginx:2' })] }, []],
  'a new command': [{}, { containers: [aContainer({ command: ['x'] })] }, [FIXED]],
  'another node': [{ nodeName: 'a' }, { nodeName: 'b' }, [FIXED]],
  'an additional container': [
    {},
    { containers: [aContainer(), aContainer({ name: 'b' })] },
    ['spec.containers: Forbidden: pod updates may not add or remove containers'],
  ],
  'a shorter deadline': [{ activeDeadlineSeconds: 60 }, { activeDeadlineSeconds: 30 }, []],
  'a longer deadline': [
    { activeDeadlineSeconds: 30 },
    { activeDeadlineSeconds: 60 },
    ['spec.activeDeadlineSeconds: Invalid value: 60: must be less than or equal to previous value'],
  ],
  'a removed gate': [{ schedulingGates: [{ name: 'a' }] }, {}, []],
  'a new node selector of a gated pod': [
    { schedulingGates: [{ name: 'a' }] },
    { schedulingGates: [{ name: 'a' }], nodeSelector: { disk: 'ssd' } },
    [],
  ],
  'a new gate': [
    {},
    { schedulingGates: [{ name: 'a' }] },
    ["spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'a'"],
  ],
};
for (const [name, [before, after, want]] of Object.entries(changes)) {
  test(`updates: ${name}`, () => {
    const tolerations = [{ operator: 'Exists' }];
    const old = aPod({ ...admitted, tolerations, ...before });
    assert.deepEqual(changeErrors(pods, old, aPod({ ...admitted, tolerations, ...after })), want);
  });
}

test('tolerations may be added but not removed', () => {
  const one = { key: 'a', operator: 'Exists' };
  const two = { key: 'b', operator: 'Exists' };
  const spec = (tolerations: Spec[]) => aPod({ ...admitted, tolerations: [{ operator: 'Exists' }, ...tolerations] });
  assert.deepEqual(changeErrors(pods, spec([one]), spec([one, two])), []);
  assert.deepEqual(changeErrors(pods, spec([one, two]), spec([two])), [
    'spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds',
  ]);
});
