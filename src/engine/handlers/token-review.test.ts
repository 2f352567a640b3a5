import assert from 'node:assert/strict';
import { test } from 'node:test';
import { joinTokenLookups, tokenLookup, type TokenLookup } from '#engine/auth/tokens.ts';
import { reviewToken } from '#engine/handlers/review.ts';

const API = 'https://kubernetes.default.svc';
const robot = { name: 'robot', uid: '7', groups: ['bots', 'system:authenticated'], extra: { a: ['b'] } };

/** Accepts `jwt` for the API and for vault, and refuses `old` with a reason. */
const issued: TokenLookup = Object.assign((token: string) => (token === 'jwt' ? robot : undefined), {
  review(token: string, audiences: readonly string[]) {
    if (token === 'old') return { refused: 'service account token has expired' };
    if (token !== 'jwt') return undefined;
    const shared = [API, 'vault'].filter((audience) => audiences.includes(audience));
    return shared.length === 0 ? { refused: 'wrong audience' } : { user: robot, audiences: shared };
  },
});
const fixed = tokenLookup([
  { token: 's3cret', user: { name: 'jane', groups: ['dev'] } },
  { token: 'old', user: { name: 'luck', groups: [] } },
]);
const tokens = joinTokenLookups([issued, fixed]);

const ROBOT = { username: 'robot', uid: '7', groups: ['bots', 'system:authenticated'], extra: { a: ['b'] } };
const JANE = { username: 'jane', groups: ['dev', 'system:authenticated'] };

const cases: Record<string, { spec: object; want: object }> = {
  'a token for this API': { spec: { token: 'jwt' }, want: { authenticated: true, user: ROBOT, audiences: [API] } },
  'a token for the requested audience': {
    spec: { token: 'jwt', audiences: ['vault', 'x'] },
    want: { authenticated: true, user: ROBOT, audiences: ['vault'] },
  },
  'a token for other audiences': {
    spec: { token: 'jwt', audiences: ['x'] },
    want: { user: {}, error: 'wrong audience' },
  },
  'a static token': { spec: { token: 's3cret' }, want: { authenticated: true, user: JANE, audiences: [API] } },
  'a static token for the audience of this API': {
    spec: { token: 's3cret', audiences: ['x', API] },
    want: { authenticated: true, user: JANE, audiences: [API] },
  },
  'a static token for another audience': {
    spec: { token: 's3cret', audiences: ['vault'] },
    want: { user: {}, error: 'invalid bearer token' },
  },
  'an empty list of audiences means this API': {
    spec: { token: 's3cret', audiences: [] },
    want: { authenticated: true, user: JANE, audiences: [API] },
  },
  'a token that one lookup refuses and another accepts': {
    spec: { token: 'old' },
    want: { authenticated: true, user: { username: 'luck', groups: ['system:authenticated'] }, audiences: [API] },
  },
  'a token that one lookup refuses and no other accepts': {
    spec: { token: 'old', audiences: ['vault'] },
    want: { user: {}, error: 'service account token has expired' },
  },
  'an unknown token': { spec: { token: 'x' }, want: { user: {}, error: 'invalid bearer token' } },
};

const object = (spec: object) => ({
  apiVersion: 'authentication.k8s.io/v1',
  kind: 'TokenReview',
  metadata: {},
  spec,
});

for (const [name, { spec, want }] of Object.entries(cases)) {
  test(`reviews ${name}`, () => assert.deepEqual(reviewToken({ tokens }, object(spec)), want));
}

test('a review requires a token', () => {
  assert.throws(() => reviewToken({ tokens }, object({})), {
    code: 400,
    reason: 'BadRequest',
    message: 'token is required for TokenReview in authentication',
  });
});

test('the joined lookup accepts all tokens', () => {
  assert.deepEqual(
    ['jwt', 's3cret', 'old', 'x'].map((token) => tokens(token)?.name),
    ['robot', 'jane', 'luck', undefined],
  );
});
