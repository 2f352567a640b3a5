/** The schemas of security contexts of pods and containers. */
import { bool, int64, list, obj, oneOf, str } from '#kube/schema-dsl.ts';

export const capabilities = obj({
  add: list(str(), { atomic: true }),
  drop: list(str(), { atomic: true }),
});

export const seLinuxOptions = obj({
  level: str(),
  role: str(),
  type: str(),
  user: str(),
});

/** A seccomp or AppArmor profile. */
const confinementProfile = obj(
  {
    localhostProfile: str(),
    type: oneOf(['Localhost', 'RuntimeDefault', 'Unconfined']),
  },
  { required: ['type'] },
);

export const windowsSecurityContextOptions = obj({
  gmsaCredentialSpec: str(),
  gmsaCredentialSpecName: str(),
  hostProcess: bool(),
  runAsUserName: str(),
});

export const securityContext = obj({
  allowPrivilegeEscalation: bool(),
  appArmorProfile: confinementProfile,
  capabilities,
  privileged: bool(),
  procMount: oneOf(['Default', 'Unmasked']),
  readOnlyRootFilesystem: bool(),
  runAsGroup: int64(),
  runAsNonRoot: bool(),
  runAsUser: int64(),
  seLinuxOptions,
  seccompProfile: confinementProfile,
  windowsOptions: windowsSecurityContextOptions,
});

export const sysctl = obj(
  {
    name: str(),
    value: str(),
  },
  { required: ['name', 'value'] },
);

export const podSecurityContext = obj({
  appArmorProfile: confinementProfile,
  fsGroup: int64(),
  fsGroupChangePolicy: oneOf(['Always', 'OnRootMismatch']),
  runAsGroup: int64(),
  runAsNonRoot: bool(),
  runAsUser: int64(),
  seLinuxChangePolicy: oneOf(['MountOption', 'Recursive']),
  seLinuxOptions,
  seccompProfile: confinementProfile,
  supplementalGroups: list(int64(), { atomic: true }),
  supplementalGroupsPolicy: oneOf(['Merge', 'Strict']),
  sysctls: list(sysctl, { atomic: true }),
  windowsOptions: windowsSecurityContextOptions,
});
