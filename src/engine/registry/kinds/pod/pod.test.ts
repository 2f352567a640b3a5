/** Tests the defaults and the columns of pods. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { anObject, cellsOf, created } from '#engine/registry/kinds/testing/sample-kind.ts';
import { type Spec, aContainer, aPod } from '#engine/registry/kinds/pod/testing/sample-pod.ts';
import { pods } from '#engine/registry/kinds/pod/pod.ts';
import { compileSchema } from '#engine/registry/structural/compile.ts';

const specOf = (spec: Spec = {}) => created(pods, aPod(spec))['spec'] as Spec & { containers: Spec[] };

test('a minimal pod gets all defaults', () => {
  const { spec, status } = created(pods, aPod({}, { status: { phase: 'Running', podIP: '10.0.0.1' } }));
  assert.deepEqual(spec, {
    containers: [
      {
        name: 'app',
        image: 'nginx:1.27',
        imagePullPolicy: 'IfNotPresent',
        resources: {},
        terminationMessagePath: '/dev/termination-log',
        terminationMessagePolicy: 'File',
      },
    ],
    dnsPolicy: 'ClusterFirst',
    enableServiceLinks: true,
    restartPolicy: 'Always',
    schedulerName: 'default-scheduler',
    securityContext: {},
    terminationGracePeriodSeconds: 30,
  });
  assert.deepEqual(status, { phase: 'Pending', qosClass: 'BestEffort' });
});

const pulls: Record<string, [image: string, policy: string]> = {
  'no tag': ['nginx', 'Always'],
  'the tag latest': ['nginx:latest', 'Always'],
  'a tag': ['nginx:1', 'IfNotPresent'],
  'a registry with a port and no tag': ['registry:5000/nginx', 'Always'],
  'a digest': ['nginx@sha256:abc', 'IfNotPresent'],
};
for (const [name, [image, policy]] of Object.entries(pulls)) {
  test(`imagePullPolicy of ${name}`, () => {
    assert.equal(specOf({ containers: [aContainer({ image })] }).containers[0]?.['imagePullPolicy'], policy);
  });
}

test('defaults that depend on other fields', () => {
  const spec = specOf({
    hostNetwork: true,
    serviceAccount: 'robot',
    priorityClassName: 'high',
    volumes: [{ name: 'scratch' }, { name: 'keys', secret: { secretName: 's' } }],
    tolerations: [{ operator: 'Exists' }],
    containers: [
      aContainer({
        ports: [{ containerPort: 80 }],
        resources: { limits: { cpu: 0.5, memory: '1024Mi' }, requests: { cpu: '100m' } },
        livenessProbe: { httpGet: { port: 80 } },
      }),
    ],
  });
  const [container] = spec.containers;
  assert.equal(spec['serviceAccountName'], 'robot');
  assert.equal(spec['priority'], undefined, 'the class decides');
  assert.deepEqual(spec['volumes'], [
    { name: 'scratch', emptyDir: {} },
    { name: 'keys', secret: { secretName: 's', defaultMode: 420 } },
  ]);
  assert.deepEqual(spec['tolerations'], [{ operator: 'Exists' }], 'already tolerates everything');
  assert.deepEqual(container?.['ports'], [{ containerPort: 80, protocol: 'TCP', hostPort: 80 }]);
  assert.deepEqual(container?.['resources'], {
    limits: { cpu: '500m', memory: '1Gi' },
    requests: { cpu: '100m', memory: '1Gi' },
  });
  assert.deepEqual(container?.['livenessProbe'], {
    httpGet: { port: 80, path: '/', scheme: 'HTTP' },
    timeoutSeconds: 1,
    periodSeconds: 10,
    successThreshold: 1,
    failureThreshold: 3,
  });
});

test('zero values count as unset', () => {
  const containers = [aContainer({ ports: [{ containerPort: 80, hostPort: 0 }] })];
  const spec = specOf({ hostNetwork: true, containers });
  assert.deepEqual(spec.containers[0]?.['ports'], [{ containerPort: 80, protocol: 'TCP', hostPort: 80 }]);
});

test('fields from after Kubernetes 1.32 are dropped', () => {
  const pod = anObject(pods, aPod({ hostnameOverride: 'x' }, { status: { observedGeneration: 1 } }));
  const unknown: string[] = [];
  compileSchema(pods.schema, { builtIn: true }).prune(pod, (path) => unknown.push(path));
  assert.deepEqual(unknown, ['spec.hostnameOverride', 'status.observedGeneration']);
});

test('the pod IP falls back to the older field', () => {
  const fields = aPod({}, { status: { podIP: '10.0.0.8' } });
  assert.equal(cellsOf(pods, fields)['IP'], '10.0.0.8');
  assert.equal(pods.selectableFields['status.podIP']?.(anObject(pods, fields)), '10.0.0.8');
});

test('a quantity may be a fractional number', () => {
  const pod = anObject(pods, aPod({ containers: [aContainer({ resources: { limits: { cpu: 0.5 } } })] }));
  assert.equal(compileSchema(pods.schema, { builtIn: true }).decodes(pod), true);
});

test('a gated pod has a condition that explains why it is not scheduled', () => {
  const { status } = created(pods, aPod({ schedulingGates: [{ name: 'example.com/wait' }] }));
  const [condition] = (status as { conditions: { reason: string }[] }).conditions;
  assert.equal(condition?.reason, 'SchedulingGated');
});

const qos: Record<string, [Spec, string]> = {
  'neither requests nor limits': [{}, 'BestEffort'],
  'limits for both': [{ limits: { cpu: '1', memory: '1Gi' } }, 'Guaranteed'],
  'a request below its limit': [{ limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '500m' } }, 'Burstable'],
  'a limit for memory only': [{ limits: { memory: '1Gi' } }, 'Burstable'],
  'requests of zero': [{ requests: { cpu: '0' } }, 'BestEffort'],
  'a request of zero below a limit': [
    { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '0', memory: '1Gi' } },
    'Burstable',
  ],
};
for (const [name, [resources, want]] of Object.entries(qos)) {
  test(`qosClass: ${name}`, () => {
    const { status } = created(pods, aPod({ containers: [aContainer({ resources })] }));
    assert.equal((status as { qosClass: string }).qosClass, want);
  });
}

test('an update may omit fields that admission set', () => {
  const old = created(pods, aPod());
  const next = anObject(pods, aPod());
  compileSchema(pods.schema, { builtIn: true }).applyDefaults(next);
  pods.strategy.prepareForUpdate?.(next, old);
  assert.deepEqual(next['spec'], old['spec']);
});

test('the grace period is that of the request, else that of the spec, and zero for a pod that does not run', () => {
  const grace = (spec: Spec, phase: string, requested?: number) =>
    pods.strategy.graceSeconds?.({ ...created(pods, aPod(spec)), status: { phase } }, requested);
  assert.equal(grace({ nodeName: 'a' }, 'Running'), 30);
  assert.equal(grace({ nodeName: 'a', terminationGracePeriodSeconds: 5 }, 'Running'), 5);
  assert.equal(grace({ nodeName: 'a' }, 'Running', 0), 0);
  assert.equal(grace({}, 'Pending'), 0);
  assert.equal(grace({ nodeName: 'a' }, 'Succeeded'), 0);
});

test('wide columns', () => {
  const cells = cellsOf(pods, {
    spec: {
      containers: [aContainer()],
      nodeName: 'node-1',
      readinessGates: [{ conditionType: 'x' }, { conditionType: 'y' }],
    },
    status: { phase: 'Running', podIPs: [{ ip: '10.0.0.7' }], conditions: [{ type: 'x', status: 'True' }] },
  });
  assert.deepEqual(cells, {
    Ready: '0/1',
    Status: 'Running',
    Restarts: '0',
    Age: '5m',
    IP: '10.0.0.7',
    Node: 'node-1',
    'Nominated Node': '<none>',
    'Readiness Gates': '1/2',
  });
});
