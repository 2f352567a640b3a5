/**
 * The engine behind real TLS with parts that a test chooses. For tests of servers that the engine forwards requests to.
 */
import { join } from 'node:path';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { createAuthenticator } from '#engine/auth/authenticate.ts';
import { ensurePki } from '#engine/auth/certificates.ts';
import { issueOutwardIdentity } from '#engine/auth/front-proxy.ts';
import { MASTERS } from '#engine/auth/groups.ts';
import { createCore, type Core } from '#engine/core.ts';
import type { ConnectionSizes } from '#engine/http/connection-limits.ts';
import { HttpsListener } from '#engine/http/server.ts';
import { LocalServices } from '#engine/remote/local-services.ts';
import { openMemoryStore } from '#engine/store/testing/memory-store.ts';
import { systemClock, type Clock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import { sendHttp1Request } from '#test/support/raw-https.ts';
import { createTemporaryDir, type Scope } from '#test/support/server-process.ts';
import type { Loose } from '#test/support/test-api.ts';

export interface FrontServer {
  readonly core: Core;
  readonly services: LocalServices;
  /** The directory with ca.crt and ca.key. */
  readonly pkiDir: string;
  readonly caPem: string;
  readonly admin: ClusterAccess;
  /** Returns access for another user, with a certificate of the same CA. */
  accessOf(user: string, groups?: readonly string[]): ClusterAccess;
  /** Creates the object as administrator; throws if that fails. */
  create(path: string, object: Loose): Promise<Loose>;
  stop(): Promise<void>;
}

export async function startFrontServer(
  t: Scope,
  { clock = systemClock, connectionSizes }: { clock?: Clock; connectionSizes?: ConnectionSizes } = {},
): Promise<FrontServer> {
  const pkiDir = join(createTemporaryDir(t), 'pki');
  const hosts = ['127.0.0.1', 'localhost'];
  const pki = await ensurePki({ dir: pkiDir, hosts, now: () => systemClock.now(), log: silentLog });
  const store = await openMemoryStore();
  const services = new LocalServices();
  const core = createCore({ store, clock, log: silentLog, services, identity: issueOutwardIdentity(pki, { clock }) });
  const listener = await HttpsListener.start({
    host: '127.0.0.1',
    port: 0,
    cert: pki.server.certPem,
    key: pki.server.keyPem,
    ca: pki.caPem,
    handler: core.handler,
    authenticate: createAuthenticator({ tokens: core.tokens }),
    ...(connectionSizes && { connectionSizes }),
    log: silentLog,
  });
  const accessOf = (user: string, groups: readonly string[] = []): ClusterAccess => {
    const { certPem, keyPem } = pki.issueClientCertificate({ user, groups, days: 1 });
    return {
      server: `https://127.0.0.1:${listener.port}`,
      namespace: 'default',
      certificateAuthority: pki.caPem,
      insecureSkipTlsVerify: false,
      clientCertificate: certPem,
      clientKey: keyPem,
    };
  };
  const admin = accessOf('admin', [MASTERS]);
  return {
    core,
    services,
    pkiDir,
    caPem: pki.caPem,
    admin,
    accessOf,
    async create(path, object) {
      const headers = { 'content-type': 'application/json' };
      const answer = await sendHttp1Request(admin, { method: 'POST', path, headers, body: JSON.stringify(object) });
      if (answer.status !== 201) throw new Error(`POST ${path}: ${answer.status} ${answer.text}`);
      return JSON.parse(answer.text);
    },
    async stop() {
      await listener.stop();
      core.stop();
      await store.close();
    },
  };
}
