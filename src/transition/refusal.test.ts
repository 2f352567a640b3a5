import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TransportError } from '#client/transport.ts';
import {
  ApiError,
  conflict,
  forbidden,
  internalError,
  invalid,
  MODIFIED,
  notFound,
  UNFIT_PATCH,
} from '#kube/api-error.ts';
import { isRefusal } from '#transition/refusal.ts';

const VMS = { group: 'kubevirt.io', plural: 'virtualmachines' };
const KIND = { group: 'kubevirt.io', kind: 'VirtualMachine' };
const RIGHT = 'User "system:serviceaccount:a:b" cannot patch resource "virtualmachines" in API group "kubevirt.io"';

const cases: Record<string, { error: unknown; want: boolean }> = {
  'a webhook that says no': {
    error: new ApiError(403, 'Forbidden', 'admission webhook "x" denied the request: no'),
    want: true,
  },
  'a policy that says no': { error: forbidden(VMS, 'db', "ValidatingAdmissionPolicy 'p' denied request"), want: true },
  'an object that is none': { error: invalid(KIND, 'db', []), want: true },
  'a right that is missing for now': { error: forbidden(VMS, 'db', RIGHT), want: false },
  'a VM that is not any more as it was': { error: new ApiError(422, 'Invalid', UNFIT_PATCH), want: false },
  'a VM that was changed meanwhile': { error: conflict(VMS, 'db', MODIFIED), want: false },
  'a VM that is gone': { error: notFound(VMS, 'db'), want: false },
  'a server in trouble': { error: internalError('disk'), want: false },
  'a server that is away': { error: new TransportError('away'), want: false },
};
for (const [name, { error, want }] of Object.entries(cases)) {
  test(name, () => assert.equal(isRefusal(error), want));
}
