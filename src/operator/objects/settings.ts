/** The KubeVirt object: created empty, and owned by the administrator afterwards. */
import { KUBEVIRTS } from '#api/kubevirt/kind.ts';
import { KUBEVIRT_NAME, SYSTEM_NAMESPACE } from '#api/names.ts';
import { desiredObject, type Desired } from '#operator/desired.ts';

export const settingsObject: Desired = desiredObject(
  KUBEVIRTS,
  { namespace: SYSTEM_NAMESPACE, name: KUBEVIRT_NAME },
  { spec: { configuration: {} } },
  { once: true },
);
