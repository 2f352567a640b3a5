import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matchFailurePolicy, type FailurePolicyMatch } from '#engine/controllers/job/failure-policy.ts';
import { aPod, type PodOptions } from '#engine/controllers/job/testing/job-world.ts';
import type { JobSpec } from '#engine/registry/kinds/job/job-schema.ts';

type Rules = NonNullable<JobSpec['podFailurePolicy']>['rules'];
const onCodes = (action: Rules[number]['action'], operator: 'In' | 'NotIn', ...values: number[]): Rules[number] => ({
  action,
  onExitCodes: { operator, values },
});
const disrupted: PodOptions['status'] = { phase: 'Failed', conditions: [{ type: 'DisruptionTarget', status: 'True' }] };
const onDisruption = (action: Rules[number]['action'], status = 'True'): Rules[number] => ({
  action,
  onPodConditions: [{ type: 'DisruptionTarget', status }],
});

const cases: Record<string, [rules: Rules, pod: PodOptions, want: FailurePolicyMatch]> = {
  'no rule matches without rules': [[], { exitCode: 1 }, {}],
  'In matches a listed exit code': [[onCodes('Ignore', 'In', 1, 42)], { exitCode: 42 }, { action: 'Ignore' }],
  'In does not match another exit code': [[onCodes('Ignore', 'In', 1)], { exitCode: 42 }, {}],
  'NotIn matches an exit code that is not listed': [
    [onCodes('Count', 'NotIn', 1)],
    { exitCode: 42 },
    { action: 'Count' },
  ],
  'exit code 0 never matches': [[onCodes('FailJob', 'NotIn', 1)], { exitCode: 0 }, {}],
  'the first rule that matches decides': [
    [onCodes('FailIndex', 'In', 7), onCodes('FailJob', 'In', 7)],
    { exitCode: 7 },
    { action: 'FailIndex' },
  ],
  'a rule may name a container': [
    [{ action: 'Ignore', onExitCodes: { containerName: 'other', operator: 'In', values: [1] } }],
    { exitCode: 1 },
    {},
  ],
  'FailJob reports the exit code': [
    [onCodes('Ignore', 'In', 1), onCodes('FailJob', 'In', 42)],
    { exitCode: 42 },
    {
      action: 'FailJob',
      message: 'Container main for pod ns/a failed with exit code 42 matching FailJob rule at index 1',
    },
  ],
  'matches a condition of the pod': [[onDisruption('Ignore')], { status: disrupted }, { action: 'Ignore' }],
  'does not match a condition with another status': [[onDisruption('Ignore', 'False')], { status: disrupted }, {}],
  'FailJob reports the condition': [
    [onDisruption('FailJob')],
    { status: disrupted },
    { action: 'FailJob', message: 'Pod ns/a has condition DisruptionTarget matching FailJob rule at index 0' },
  ],
};
for (const [name, [rules, pod, want]] of Object.entries(cases)) {
  test(`podFailurePolicy: ${name}`, () => {
    assert.deepEqual(matchFailurePolicy({ rules }, aPod('a', { phase: 'Failed', ...pod })), want);
  });
}
