/** Authentication as a client sees it: certificates, tokens and anonymous requests. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { ensurePki, type Pki } from '#engine/auth/certificates.ts';
import { systemClock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import {
  sendHttp1Request,
  sendHttp2Request,
  openHttp2Session,
  withoutCredentials,
  type RawRequest,
} from '#test/support/raw-https.ts';
import { startServer, createTemporaryDir, type Scope } from '#test/support/server-process.ts';

const TOKENS = [
  'reader-token,jane,1001,developers',
  'admin-token,root,1002,"system:masters,operators"',
  'plain-token,joe,1003',
].join('\n');

const DAYS = 1;

function pkiIn(dir: string): Promise<Pki> {
  return ensurePki({ dir, hosts: ['localhost', '127.0.0.1'], now: () => systemClock.now(), log: silentLog });
}

suite('access', () => {
  let admin: ClusterAccess;
  let anonymous: ClusterAccess;
  /** The CA of the server, and another CA. */
  let ours: Pki;
  let foreign: Pki;

  const cleanups: (() => void)[] = [];
  after(() => cleanups.forEach((cleanup) => cleanup()));
  before(async () => {
    const scope: Scope = { after: (fn) => cleanups.push(fn) };
    const dir = createTemporaryDir(scope);
    const tokenAuthFile = join(dir, 'tokens.csv');
    writeFileSync(tokenAuthFile, `${TOKENS}\n`, { mode: 0o600 });
    const dataDir = join(dir, 'data');
    admin = (await startServer(scope, { dataDir, tokenAuthFile })).access();
    anonymous = withoutCredentials(admin);
    ours = await pkiIn(join(dataDir, 'pki'));
    foreign = await pkiIn(join(dir, 'foreign'));
  });

  const withToken = (token: string): ClusterAccess => ({ ...anonymous, token });
  const withCertificate = (pki: Pki, user: string, groups: string[]): ClusterAccess => {
    const { certPem, keyPem } = pki.issueClientCertificate({ user, groups, days: DAYS });
    return { ...anonymous, clientCertificate: certPem, clientKey: keyPem };
  };
  const refused = (status: number, reason: string, message: string) => ({ status, reason, message });

  async function outcome(access: ClusterAccess, request: RawRequest) {
    const { status, headers, text } = await sendHttp1Request(access, request);
    if (status < 300) return { status };
    assert.equal(headers['content-type'], 'application/json');
    const body = JSON.parse(text) as { kind: string; status: string; code: number; reason: string; message: string };
    assert.deepEqual([body.kind, body.status, body.code], ['Status', 'Failure', status]);
    return refused(status, body.reason, body.message);
  }

  test('only health and version are allowed for anonymous requests', async () => {
    const open = ['/healthz', '/livez', '/readyz', '/readyz?verbose', '/version', '/version/'];
    for (const path of open) assert.deepEqual(await outcome(anonymous, { path }), { status: 200 }, path);
    const closed = [
      '/',
      '/api',
      '/apis',
      '/api/v1',
      '/apis/apps/v1',
      '/openapi/v2',
      '/openapi/v3',
      '/openapi/v3/api/v1',
      '/metrics',
      '/livez/ping',
      '/readyz/ping',
      '/livezz',
      '/versions',
      '/debug/pprof/',
      '/no-such-path',
    ];
    for (const path of closed) {
      const message = `forbidden: User "system:anonymous" cannot get path "${path}"`;
      assert.deepEqual(await outcome(anonymous, { path }), refused(403, 'Forbidden', message));
    }
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const message = `forbidden: User "system:anonymous" cannot ${method.toLowerCase()} path "/version"`;
      assert.deepEqual(await outcome(anonymous, { method, path: '/version' }), refused(403, 'Forbidden', message));
    }
  });

  test('anonymous requests for resources are refused alike, whether the resource exists or not', async () => {
    const who = 'User "system:anonymous" cannot';
    const cases: Record<string, string> = {
      'GET /api/v1/namespaces': `namespaces is forbidden: ${who} list resource "namespaces" in API group "" at the cluster scope`,
      'GET /api/v1/namespaces/default/secrets': `secrets is forbidden: ${who} list resource "secrets" in API group "" in the namespace "default"`,
      'GET /api/v1/namespaces/default/secrets/x': `secrets "x" is forbidden: ${who} get resource "secrets" in API group "" in the namespace "default"`,
      'GET /api/v1/secrets?watch=1': `secrets is forbidden: ${who} watch resource "secrets" in API group "" at the cluster scope`,
      'POST /api/v1/namespaces/default/configmaps': `configmaps is forbidden: ${who} create resource "configmaps" in API group "" in the namespace "default"`,
      // A namespace is authorised in itself.
      'DELETE /api/v1/namespaces/default': `namespaces "default" is forbidden: ${who} delete resource "namespaces" in API group "" in the namespace "default"`,
      'PATCH /apis/apps/v1/namespaces/default/deployments/x/status': `deployments.apps "x" is forbidden: ${who} patch resource "deployments/status" in API group "apps" in the namespace "default"`,
      'GET /apis/no.such.group/v1/things': `things.no.such.group is forbidden: ${who} list resource "things" in API group "no.such.group" at the cluster scope`,
    };
    for (const [line, message] of Object.entries(cases)) {
      const [method, path] = line.split(' ') as [string, string];
      assert.deepEqual(await outcome(anonymous, { method, path }), refused(403, 'Forbidden', message), line);
    }
  });

  test('invalid credentials get 401, even for paths that allow anonymous requests', async () => {
    const foreignClient = withCertificate(foreign, 'selfsame-admin', ['system:masters']);
    const wrong: Record<string, ClusterAccess> = {
      'an unknown token': withToken('no-such-token'),
      'the beginning of a valid token': withToken('admin-toke'),
      'the certificate of another CA': foreignClient,
      'the certificate of another CA with a wrong token': { ...foreignClient, token: 'no-such-token' },
    };
    for (const [title, access] of Object.entries(wrong)) {
      for (const path of ['/api/v1/namespaces', '/version', '/livez']) {
        assert.deepEqual(
          await outcome(access, { path }),
          refused(401, 'Unauthorized', 'Unauthorized'),
          `${title}: ${path}`,
        );
      }
    }
    assert.deepEqual(await outcome({ ...foreignClient, token: 'admin-token' }, { path: '/api/v1/namespaces' }), {
      status: 200,
    });
  });

  test('a certificate or token without rights allows discovery only', async () => {
    const cases: Record<string, { access: ClusterAccess; user: string }> = {
      token: { access: withToken('reader-token'), user: 'jane' },
      'token without groups': { access: withToken('plain-token'), user: 'joe' },
      certificate: { access: withCertificate(ours, 'eve', ['guests']), user: 'eve' },
    };
    for (const { access, user } of Object.values(cases)) {
      for (const path of ['/api', '/apis', '/api/v1', '/openapi/v2', '/version', '/livez']) {
        assert.deepEqual(await outcome(access, { path }), { status: 200 }, `${user} ${path}`);
      }
      const listing = `configmaps is forbidden: User "${user}" cannot list resource "configmaps" in API group "" in the namespace "default"`;
      const path = '/api/v1/namespaces/default/configmaps';
      assert.deepEqual(await outcome(access, { path }), refused(403, 'Forbidden', listing));
      const metrics = `forbidden: User "${user}" cannot get path "/metrics"`;
      assert.deepEqual(await outcome(access, { path: '/metrics' }), refused(403, 'Forbidden', metrics));
    }
  });

  test('members of system:masters are allowed everything, by certificate or token', async () => {
    const accesses = [admin, withToken('admin-token'), withCertificate(ours, 'boss', ['system:masters'])];
    for (const access of accesses) {
      for (const path of ['/api/v1/secrets', '/metrics'])
        assert.deepEqual(await outcome(access, { path }), { status: 200 });
    }
  });

  test('each connection is authenticated by its own certificate, and each request by its own token', async (t) => {
    // TLS sessions must not be resumed without their certificate.
    const sessions = [admin, anonymous, admin, anonymous].map((access) => openHttp2Session(t, access));
    const path = '/api/v1/namespaces';
    const statuses = await Promise.all(
      sessions.map((session) => sendHttp2Request(session, anonymous, { path }).then(({ status }) => status)),
    );
    assert.deepEqual(statuses, [200, 403, 200, 403]);
    const shared = sessions[1]!;
    const tokens = ['admin-token', 'reader-token', 'wrong', undefined, 'admin-token'];
    const answers = tokens.map((token) => sendHttp2Request(shared, { ...anonymous, token }, { path }));
    assert.deepEqual(
      (await Promise.all(answers)).map(({ status }) => status),
      [200, 403, 401, 403, 200],
    );
  });

  test('other schemes than Bearer do not authenticate', async () => {
    const headers = { authorization: `Basic ${Buffer.from('root:admin-token').toString('base64')}` };
    assert.equal((await sendHttp1Request(anonymous, { path: '/version', headers })).status, 200);
    assert.equal((await sendHttp1Request(anonymous, { path: '/api', headers })).status, 403);
  });

  test('the server certificate is valid for each loopback name, and TLS older than 1.2 is refused', async () => {
    const { port } = new URL(admin.server);
    const ca = admin.certificateAuthority;
    for (const host of ['localhost', '127.0.0.1']) {
      const socket = connectTls({
        host: '127.0.0.1',
        port: Number(port),
        ca,
        servername: host === 'localhost' ? host : undefined,
      });
      await once(socket, 'secureConnect');
      assert.ok(socket.authorized);
      assert.match(socket.getProtocol() ?? '', /^TLSv1\.[23]$/);
      socket.destroy();
    }
    const old = connectTls({
      host: '127.0.0.1',
      port: Number(port),
      ca,
      minVersion: 'TLSv1',
      maxVersion: 'TLSv1.1',
      ciphers: 'ALL:@SECLEVEL=0',
    });
    await assert.rejects(once(old, 'secureConnect'), { code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION' });
  });
});
