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
  INAPPLICABLE_PATCH,
} from '#kube/api-error.ts';
import { isPermanentRefusal } from '#transition/transition-run.ts';

const VMS = { group: 'kubevirt.io', plural: 'virtualmachines' };
const KIND = { group: 'kubevirt.io', kind: 'VirtualMachine' };
const RIGHT = 'User "system:serviceaccount:a:b" cannot patch resource "virtualmachines" in API group "kubevirt.io"';

const cases: Record<string, { error: unknown; want: boolean }> = {
  'a webhook that denies the request is permanent': {
    error: new ApiError(403, 'Forbidden', 'admission webhook "x" denied the request: no'),
    want: true,
  },
  'a policy that denies the request is permanent': {
    error: forbidden(VMS, 'db', "ValidatingAdmissionPolicy 'p' denied request"),
    want: true,
  },
  'an invalid object is permanent': { error: invalid(KIND, 'db', []), want: true },
  'a missing right is temporary': { error: forbidden(VMS, 'db', RIGHT), want: false },
  'a patch that no longer fits is temporary': { error: new ApiError(422, 'Invalid', INAPPLICABLE_PATCH), want: false },
  'a conflict is temporary': { error: conflict(VMS, 'db', MODIFIED), want: false },
  'a VM that is gone is not a refusal': { error: notFound(VMS, 'db'), want: false },
  'an error of the server is temporary': { error: internalError('disk'), want: false },
  'an unreachable server is temporary': { error: new TransportError('away'), want: false },
};
for (const [name, { error, want }] of Object.entries(cases)) {
  test(name, () => assert.equal(isPermanentRefusal(error), want));
}
