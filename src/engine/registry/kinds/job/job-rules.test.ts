/** Tests the validation of Job policies and of status updates. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jobs } from '#engine/registry/kinds/job/job.ts';
import type { JobStatus } from '#engine/registry/kinds/job/job-schema.ts';
import { created, newObjectErrors, type Fields } from '#engine/registry/kinds/testing/sample-kind.ts';

const aJob = (spec: Fields = {}): Fields => ({
  spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'i' }] } }, ...spec },
});
const failurePolicy = (rule: Fields): Fields => aJob({ podFailurePolicy: { rules: [rule] } });
const onExitCodes = (values: number[], more: Fields = {}) => ({ operator: 'In', values, ...more });
const indexed = (spec: Fields): Fields => aJob({ completionMode: 'Indexed', completions: 3, ...spec });
const RULE = 'spec.podFailurePolicy.rules[0]';
const CODES = `${RULE}.onExitCodes`;

const faulty: Record<string, [Fields, string[]]> = {
  'a valid policy': [failurePolicy({ action: 'FailJob', onExitCodes: onExitCodes([1, 42]) }), []],
  'a policy for a missing container': [
    failurePolicy({ action: 'FailJob', onExitCodes: onExitCodes([1], { containerName: 'x' }) }),
    [
      `${CODES}.containerName: Invalid value: "x": must be one of the container or initContainer names in the pod template`,
    ],
  ],
  'unordered, duplicate and successful exit codes': [
    failurePolicy({ action: 'Ignore', onExitCodes: onExitCodes([2, 0, 2]) }),
    [
      `${CODES}.values[1]: Invalid value: 0: must not be 0 for the In operator`,
      `${CODES}.values[2]: Duplicate value: 2`,
      `${CODES}.values: Invalid value: [2,0,2]: must be ordered`,
    ],
  ],
  'a rule without requirement': [
    failurePolicy({ action: 'Ignore' }),
    [`${RULE}: Invalid value: specifying one of OnExitCodes and OnPodConditions is required`],
  ],
  'a rule with both requirements': [
    failurePolicy({ action: 'Ignore', onExitCodes: onExitCodes([1]), onPodConditions: [{ type: 'X' }] }),
    [`${RULE}: Invalid value: specifying both OnExitCodes and OnPodConditions is not supported`],
  ],
  'FailIndex without backoffLimitPerIndex': [
    failurePolicy({ action: 'FailIndex', onExitCodes: onExitCodes([1]) }),
    [`${RULE}.action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set`],
  ],
  'a failure policy with podReplacementPolicy TerminatingOrFailed': [
    aJob({
      podReplacementPolicy: 'TerminatingOrFailed',
      podFailurePolicy: { rules: [{ action: 'Ignore', onExitCodes: onExitCodes([1]) }] },
    }),
    ['spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed"'],
  ],
  'a success policy without rules': [
    indexed({ successPolicy: { rules: [] } }),
    [
      'spec.successPolicy.rules: Required value: at least one rules must be specified when the successPolicy is specified',
    ],
  ],
  'a success policy for missing indexes': [
    indexed({ successPolicy: { rules: [{ succeededIndexes: '0,5' }] } }),
    [
      'spec.successPolicy.rules[0].succeededIndexes: Invalid value: "0,5": error parsing succeededIndexes: too large index: "5"',
    ],
  ],
  'a success policy that requires more indexes than it lists': [
    indexed({ successPolicy: { rules: [{ succeededIndexes: '0-1', succeededCount: 3 }] } }),
    [
      'spec.successPolicy.rules[0].succeededCount: Invalid value: 3: must be less than or equal to 2 (the number of indexes in the specified succeededIndexes field)',
    ],
  ],
  'maxFailedIndexes above completions': [
    indexed({ backoffLimitPerIndex: 1, maxFailedIndexes: 4 }),
    ['spec.maxFailedIndexes: Invalid value: 4: must be less than or equal to completions'],
  ],
  'a manager without a domain': [
    aJob({ managedBy: 'me' }),
    ['spec.managedBy: Invalid value: "me": must be a domain-prefixed path (such as "acme.io/foo")'],
  ],
  'a name that is too long with its index': [
    { ...indexed({}), metadata: { name: 'n'.repeat(62) } },
    [
      `metadata.name: Invalid value: "${'n'.repeat(62)}": will not able to create pod with invalid DNS label: ${'n'.repeat(62)}-2`,
    ],
  ],
};
for (const [name, [fields, want]] of Object.entries(faulty)) {
  test(`job: ${name}`, () => assert.deepEqual(newObjectErrors(jobs, fields), want));
}

const START = '2026-01-01T12:00:00Z';
const LATER = '2026-01-01T13:00:00Z';
const holds = (...types: string[]) => types.map((type) => ({ type, status: 'True' }));
const complete: JobStatus = {
  startTime: START,
  completionTime: LATER,
  succeeded: 1,
  conditions: holds('SuccessCriteriaMet', 'Complete'),
};
const met: JobStatus = { startTime: START, succeeded: 1, conditions: holds('SuccessCriteriaMet') };
const failed: JobStatus = { startTime: START, failed: 1, conditions: holds('FailureTarget', 'Failed') };

const statuses: Record<string, [before: JobStatus, after: JobStatus, want: string[], spec?: Fields]> = {
  'a Job completes': [met, complete, []],
  'a Job fails': [{ startTime: START, conditions: holds('FailureTarget') }, failed, []],
  'a finished Job is not started again': [
    failed,
    { startTime: START, failed: 1 },
    [
      'status.conditions: Invalid value: cannot disable the terminal Failed=True condition',
      'status.conditions: Invalid value: cannot disable the terminal FailureTarget=True condition',
    ],
  ],
  'Complete without SuccessCriteriaMet': [
    { startTime: START },
    { ...complete, conditions: holds('Complete') },
    [
      'status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition',
    ],
  ],
  'Complete without completionTime': [
    met,
    { ...complete, completionTime: undefined },
    ['status.completionTime: Required value: completionTime is required for Complete jobs'],
  ],
  'completionTime before startTime': [
    met,
    { ...complete, completionTime: '2026-01-01T11:00:00Z' },
    ['status.completionTime: Invalid value: "2026-01-01T11:00:00Z": completionTime cannot be set before startTime'],
  ],
  'Complete with remaining pods': [
    met,
    { ...complete, active: 1, terminating: 2, uncountedTerminatedPods: { failed: ['u'] } },
    [
      'status.active: Invalid value: 1: active>0 is invalid for finished job',
      'status.terminating: Invalid value: 2: terminating>0 is invalid for finished job',
      'status.uncountedTerminatedPods: Invalid value: {"failed":["u"]}: uncountedTerminatedPods needs to be empty for finished job',
    ],
  ],
  'decreasing counters': [
    { succeeded: 2, failed: 2 },
    { succeeded: 1, failed: 1 },
    [
      'status.failed: Invalid value: 1: cannot decrease the failed counter',
      'status.succeeded: Invalid value: 1: cannot decrease the succeeded counter',
    ],
  ],
  'more ready than active': [
    {},
    { active: 1, ready: 2 },
    ['status.ready: Invalid value: 2: cannot set more ready pods than active'],
  ],
  'a pod that is uncounted twice': [
    {},
    { uncountedTerminatedPods: { succeeded: ['u'], failed: ['u'] } },
    ['status.uncountedTerminatedPods.failed[0]: Duplicate value: "u"'],
  ],
  'a removed startTime': [
    { startTime: START },
    { startTime: LATER },
    ['status.startTime: Required value: startTime cannot be removed for unsuspended job'],
  ],
  'a startTime that changes on resumption': [
    { startTime: START, conditions: holds('Suspended') },
    { startTime: LATER },
    [],
  ],
  'indexes of a NonIndexed Job': [
    {},
    { completedIndexes: '0' },
    [
      'status.completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed completion mode',
    ],
  ],
  'unordered indexes': [
    {},
    { completedIndexes: '2,1' },
    [
      'status.completedIndexes: Invalid value: "2,1": error parsing completedIndexes: non-increasing order, previous: 2, current: 1',
    ],
    { completionMode: 'Indexed', completions: 3 },
  ],
};
for (const [name, [before, after, want, spec]] of Object.entries(statuses)) {
  test(`job status: ${name}`, () => {
    const old = created(jobs, aJob(spec));
    const faults = jobs.strategy.validateUpdate?.({ ...old, status: after }, { ...old, status: before }) ?? [];
    assert.deepEqual(
      faults.map(({ field, message }) => `${field}: ${message}`),
      want,
    );
  });
}
