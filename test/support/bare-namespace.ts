/** A namespace on a test API without controllers, with the service account that its pods need. */
import type { TestApi } from '#test/support/test-api.ts';

export async function createBareNamespace(api: TestApi, name: string): Promise<void> {
  await api.ok('POST', '/api/v1/namespaces', { body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } } });
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
  await api.ok('POST', `/api/v1/namespaces/${name}/serviceaccounts`, { body: account });
}
