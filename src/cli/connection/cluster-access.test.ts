import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findAccess, type AccessOptions } from '#cli/connection/cluster-access.ts';

const config = (server: string, context = 'here') => `
current-context: ${context}
clusters: [{ name: c, cluster: { server: "${server}" } }]
users: [{ name: u, user: { token: secret } }]
contexts: [{ name: ${context}, context: { cluster: c, user: u, namespace: lab } }]
`;
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
const FILES: Readonly<Record<string, string>> = {
  '/home/me/.kube/config': config('https://home:1'),
  '/a': config('https://a:1', 'one'),
  '/b': config('https://b:1', 'two'),
  [`${SERVICE_ACCOUNT}/namespace`]: 'pods',
  [`${SERVICE_ACCOUNT}/ca.crt`]: 'PEM',
};

function readFile(path: string): string {
  const text = FILES[path];
  if (text !== undefined) return text;
  throw Object.assign(new Error(`ENOENT: no such file or directory, open '${path}'`), { code: 'ENOENT' });
}

type Env = Record<string, string>;
const POD: Env = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' };

const good: Record<string, { choice?: AccessOptions; env?: Env; home?: string; want: [string, string] }> = {
  'the file at home': { want: ['https://home:1', 'lab'] },
  KUBECONFIG: { env: { KUBECONFIG: '/a' }, want: ['https://a:1', 'lab'] },
  'the flag before KUBECONFIG': {
    choice: { kubeconfig: '/b' },
    env: { KUBECONFIG: '/a' },
    want: ['https://b:1', 'lab'],
  },
  'the first existing file of several': { env: { KUBECONFIG: '/nope:/b' }, want: ['https://b:1', 'lab'] },
  'the file of several that has the context': {
    choice: { context: 'two' },
    env: { KUBECONFIG: '/a:/b' },
    want: ['https://b:1', 'lab'],
  },
  'another namespace and server': {
    choice: { namespace: 'x', server: 'https://other:2' },
    want: ['https://other:2', 'x'],
  },
  'the service account of the pod': { home: '/nowhere', env: POD, want: ['https://10.0.0.1:443', 'pods'] },
};
for (const [name, { choice = {}, env = {}, home = '/home/me', want }] of Object.entries(good)) {
  test(`takes ${name}`, () => {
    const { server, namespace } = findAccess(choice, { env, home, readFile });
    assert.deepEqual([server, namespace], want);
  });
}

const bad: Record<string, { choice?: AccessOptions; env?: Env; home?: string; message: RegExp }> = {
  'no kubeconfig': { home: '/nowhere', message: /^Cannot find a cluster: no kubeconfig found/ },
  'a named file that is missing': { choice: { kubeconfig: '/nope' }, message: /^Cannot read the kubeconfig: ENOENT/ },
  'an unknown context': { choice: { context: 'x' }, message: /context "x" does not exist/ },
  'a server without TLS': { choice: { server: 'http://a' }, message: /expected an https URL/ },
};
for (const [name, { choice = {}, env = {}, home = '/home/me', message }] of Object.entries(bad)) {
  test(`refuses ${name}`, () => {
    assert.throws(() => findAccess(choice, { env, home, readFile }), { name: 'CommandError', message });
  });
}
