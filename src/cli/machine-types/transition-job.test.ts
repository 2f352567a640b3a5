import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TransitionJob } from '#api/machine-types/kinds.ts';
import { optionsFromEnv, type TransitionOptions } from '#api/machine-types/options.ts';
import { VERSION } from '#lib/version.ts';
import { createdText, buildTransitionJob } from '#cli/machine-types/transition-job.ts';

const options: TransitionOptions = {
  glob: '*8.*',
  namespace: 'shop',
  restartNow: true,
  maxRestarts: 2,
  maxFailures: 1,
};

interface Pod {
  readonly containers: readonly {
    readonly args: readonly string[];
    readonly image: string;
    readonly env: readonly { readonly name: string; readonly value: string }[];
  }[];
}
const podOf = ({ spec }: TransitionJob) => spec?.template?.spec as unknown as Pod;

test('the job runs the program under its own account on a Selfsame node until it succeeds', () => {
  const job = buildTransitionJob(options);
  const { metadata } = job;
  const labels = { 'selfsame.io/machine-types': 'transition' };
  assert.deepEqual(metadata, { generateName: 'convert-machine-type-', namespace: 'selfsame-system', labels });
  const { containers, ...pod } = podOf(job);
  assert.deepEqual(pod, {
    restartPolicy: 'OnFailure',
    serviceAccountName: 'convert-machine-type',
    nodeSelector: { 'kubevirt.io/schedulable': 'true' },
    tolerations: [{ key: 'selfsame.io/vms-only', operator: 'Exists', effect: 'NoSchedule' }],
  });
  assert.deepEqual(
    containers.map(({ args, image }) => [image, ...args]),
    [[`selfsame/selfsame:${VERSION}`, 'update-machine-types']],
  );
});

test('a finished job is removed with its plan after 90 days', () => {
  assert.equal(buildTransitionJob(options).spec?.['ttlSecondsAfterFinished'], 7_776_000);
});

test('the program reads the same options from the environment', () => {
  const [container] = podOf(buildTransitionJob(options)).containers;
  const env = Object.fromEntries((container?.env ?? []).map(({ name, value }) => [name, value]));
  assert.deepEqual(optionsFromEnv(env), { options });
});

test('the message contains the commands to follow the job', () => {
  const text = createdText('convert-machine-type-x');
  assert.match(text, /^Successfully created job convert-machine-type-x\.\n/);
  assert.match(text, /\n {2}virtctl update machine-types list convert-machine-type-x\n/);
  assert.match(text, /\n {2}kubectl describe job convert-machine-type-x -n selfsame-system\n/);
});
