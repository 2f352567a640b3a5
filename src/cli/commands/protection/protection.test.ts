import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  buildProtectChange,
  protectionSummary,
  parseProtectionTarget,
  UNPROTECT_CHANGE,
  vmKeyOf,
  type ProtectionTarget,
  type TargetArguments,
} from '#cli/commands/protection/protection.ts';

const LABEL = 'kubevirt.io/vm-delete-protection';
const REASON = 'selfsame.io/delete-protection-reason';
const labels = { [LABEL]: 'true' };

const patches: Record<string, { reason?: string; want: object }> = {
  'keeps an existing reason if none is given': { want: { metadata: { labels } } },
  'writes a reason with the label': {
    reason: 'holds the ledger',
    want: { metadata: { labels, annotations: { [REASON]: 'holds the ledger' } } },
  },
  'removes an existing reason if it is empty': {
    reason: '',
    want: { metadata: { labels, annotations: { [REASON]: null } } },
  },
  'accepts a reason of maximum length': {
    reason: 'x'.repeat(1024),
    want: { metadata: { labels, annotations: { [REASON]: 'x'.repeat(1024) } } },
  },
};
for (const [title, { reason, want }] of Object.entries(patches)) {
  test(title, () => assert.deepEqual(buildProtectChange(reason).patch, want));
}

test('refuses a longer reason', () => {
  assert.throws(() => buildProtectChange('x'.repeat(1025)), {
    name: 'UsageError',
    message: 'Cannot use --reason: it has 1025 characters; expected at most 1024',
  });
});

test('unprotect removes only the label', () => {
  assert.deepEqual(UNPROTECT_CHANGE.patch, { metadata: { labels: { [LABEL]: null } } });
});

const answers: Record<string, { vm: unknown; protect: string | undefined; unprotect: string | undefined }> = {
  'one that is protected': {
    vm: { metadata: { labels } },
    protect: undefined,
    unprotect: `the server kept the label ${LABEL}`,
  },
  'one that is not': {
    vm: { metadata: { labels: { [LABEL]: 'false' } } },
    protect: `the server dropped the label ${LABEL}`,
    unprotect: undefined,
  },
  'one that is being deleted': {
    vm: { metadata: { labels, deletionTimestamp: '2026-01-01T00:00:00Z' } },
    protect: 'it is already being deleted',
    unprotect: `the server kept the label ${LABEL}`,
  },
  'no object': { vm: '', protect: `the server dropped the label ${LABEL}`, unprotect: undefined },
};
for (const [title, { vm, protect, unprotect }] of Object.entries(answers)) {
  test(`the answer is ${title}`, () => {
    assert.deepEqual(
      [buildProtectChange('why').findFailure(vm), UNPROTECT_CHANGE.findFailure(vm)],
      [protect, unprotect],
    );
  });
}

const words = (given: Partial<TargetArguments>): TargetArguments => ({
  args: [],
  selector: undefined,
  allNamespaces: false,
  namespace: undefined,
  ...given,
});
const targets: Record<string, { given: Partial<TargetArguments>; want: ProtectionTarget }> = {
  'a name': { given: { args: ['db'], namespace: 'lab' }, want: { name: 'db' } },
  'a selector': { given: { selector: 'tier=db' }, want: { selector: 'tier=db', allNamespaces: false } },
  'a selector in all namespaces': {
    given: { selector: 'tier=db', allNamespaces: true },
    want: { selector: 'tier=db', allNamespaces: true },
  },
};
for (const [title, { given, want }] of Object.entries(targets)) {
  test(`takes ${title}`, () => assert.deepEqual(parseProtectionTarget(words(given)), want));
}

const refused: Record<string, { given: Partial<TargetArguments>; message: string | RegExp }> = {
  nothing: { given: {}, message: 'expected the name of a VM, or --selector' },
  'an empty name': { given: { args: [''] }, message: 'expected the name of a VM, or --selector' },
  'a name and a selector': {
    given: { args: ['db'], selector: 'tier=db' },
    message: 'a name and --selector cannot be combined',
  },
  'an empty selector': { given: { selector: '' }, message: '--selector is empty' },
  'a selector of spaces': { given: { selector: '  ' }, message: '--selector is empty' },
  'an invalid selector': { given: { selector: 'tier in' }, message: /^unable to parse requirement: / },
  'a name in all namespaces': {
    given: { args: ['db'], allNamespaces: true },
    message: '--all-namespaces requires --selector',
  },
  'one namespace and all': {
    given: { selector: 'tier=db', allNamespaces: true, namespace: 'lab' },
    message: '--namespace and --all-namespaces cannot be combined',
  },
};
for (const [title, { given, message }] of Object.entries(refused)) {
  test(`refuses ${title}`, () => assert.throws(() => parseProtectionTarget(words(given)), { message }));
}

test('keeps only namespace and name of a VM', () => {
  assert.deepEqual(vmKeyOf({ metadata: { namespace: 'lab', name: 'db', labels } }), { namespace: 'lab', name: 'db' });
  assert.equal(vmKeyOf({ metadata: {} }), undefined);
});

test('the summary distinguishes one VM from several', () => {
  assert.equal(protectionSummary(1, UNPROTECT_CHANGE), '1 VM is no longer protected from deletion');
  assert.equal(protectionSummary(3, buildProtectChange(undefined)), '3 VMs are protected from deletion');
});
