/** The words by which our parts, KubeVirt's users and its tools know each other: groups, labels, annotations, finalizers. */

export const KUBEVIRT_GROUP = 'kubevirt.io';
export const SUBRESOURCES_GROUP = 'subresources.kubevirt.io';
export const IDENTITY_GROUP = 'identity.selfsame.io';
export const SNAPSHOT_GROUP = 'snapshot.kubevirt.io';

/** Where our own parts live. */
export const SYSTEM_NAMESPACE = 'selfsame-system';
/** The one KubeVirt object, in SYSTEM_NAMESPACE. */
export const KUBEVIRT_NAME = 'kubevirt';

/** On launcher pods: `virt-launcher`. */
export const APP_LABEL = 'kubevirt.io';
export const LAUNCHER_APP = 'virt-launcher';
/** On launcher pods: the uid of their instance. */
export const CREATED_BY_LABEL = 'kubevirt.io/created-by';
/** On launcher pods: the name of their instance, as an annotation because names may be longer than labels. */
export const DOMAIN_ANNOTATION = 'kubevirt.io/domain';
/** On instances: the node that runs them. */
export const NODE_NAME_LABEL = 'kubevirt.io/nodeName';
/** On launcher pods and instances. */
export const VM_NAME_LABEL = 'vm.kubevirt.io/name';
/** On nodes: `true` for each machine type that the node can run. */
export const MACHINE_TYPE_LABEL_PREFIX = 'machine-type.node.kubevirt.io/';
/** On nodes that run VMs. */
export const SCHEDULABLE_LABEL = 'kubevirt.io/schedulable';

/** On nodes of ours in clusters of others: only what this program brings runs there. */
export const NODE_TAINT = { key: 'selfsame.io/vms-only', value: 'true', effect: 'NoSchedule' } as const;
export const NODE_TOLERATION = { key: NODE_TAINT.key, operator: 'Exists', effect: NODE_TAINT.effect } as const;

/** On VMs, and on their instances. */
export const VM_FINALIZER = 'kubevirt.io/virtualMachineControllerFinalize';
/** On instances: gone only when the guest is. */
export const VMI_FINALIZER = 'kubevirt.io/foregroundDeleteVirtualMachine';

/** The image of launcher pods, of Job pods that run this program, and of the built-in guest (kernelBoot). */
export const LAUNCHER_IMAGE = 'selfsame/virt-launcher';
export const PROGRAM_IMAGE = 'selfsame/selfsame';
export const GUEST_IMAGE = 'selfsame/guest';
/** The container in which the guest runs, and the one whose log is the guest's serial console. */
export const COMPUTE_CONTAINER = 'compute';
export const CONSOLE_CONTAINER = 'guest-console-log';

export const LOCAL_PROVISIONER = 'selfsame.io/local';
/** The CSI driver that its PersistentVolumes name: drivers have no slash in their name. */
export const LOCAL_DRIVER = 'local.selfsame.io';
/** On PersistentVolumes of ours: the node on which the data lies; absent where every node reaches it. */
export const VOLUME_NODE_ANNOTATION = 'selfsame.io/volume-node';
/** On PersistentVolumes of ours: gone only when the data is. */
export const VOLUME_DATA_FINALIZER = 'selfsame.io/volume-data';
/** On PersistentVolumes of ours that are made from a snapshot: gone when the data has been copied into them. */
export const VOLUME_COPY_FINALIZER = 'selfsame.io/volume-copy';
/** On such PersistentVolumes: the node that copies. */
export const COPY_NODE_ANNOTATION = 'selfsame.io/volume-copy-node';

/** On VolumeSnapshotContents of ours: gone only when the data is. */
export const SNAPSHOT_DATA_FINALIZER = 'selfsame.io/snapshot-data';
/** On VolumeSnapshots and their contents: disks that are to be copied as they are at one and the same moment. */
export const SNAPSHOT_SET_ANNOTATION = 'selfsame.io/snapshot-set';
/** How many belong to the set. */
export const SNAPSHOT_SET_SIZE_ANNOTATION = 'selfsame.io/snapshot-set-size';
/** The uid of the instance whose guest has the disk open; absent where nobody has. */
export const SNAPSHOT_INSTANCE_ANNOTATION = 'selfsame.io/snapshot-instance';
/** On VolumeSnapshotContents of ours: the node that makes the copy. */
export const SNAPSHOT_NODE_ANNOTATION = 'selfsame.io/snapshot-node';

export const VM_SNAPSHOT_FINALIZER = 'snapshot.kubevirt.io/vmsnapshot-protection';
export const VM_SNAPSHOT_CONTENT_FINALIZER = 'snapshot.kubevirt.io/vmsnapshotcontent-protection';
export const VM_RESTORE_FINALIZER = 'snapshot.kubevirt.io/vmrestore-protection';
/** On VMs: `<name>-<uid>` of the restore that last made them what they are. */
export const LAST_RESTORE_ANNOTATION = 'restore.kubevirt.io/lastRestoreUID';

/** On instances: names of volumes that were plugged in for this run only, as a JSON list. */
export const EPHEMERAL_HOTPLUG_ANNOTATION = 'kubevirt.io/ephemeral-hotplug-volumes';
/** On VMs that were imported: machine type and device rows, as JSON (ImportedDevices); the record begins with them. */
export const IMPORTED_DEVICES_ANNOTATION = 'identity.selfsame.io/imported-devices';

/** On identity records: removed by controllers/vm once their VM is gone, so that a delete cannot take the record before. */
export const RECORD_FINALIZER = 'selfsame.io/identity-record';
/** On VMs whose record is lost: the uid of that record. It allows the next start to choose new device addresses. */
export const NEW_LAYOUT_ANNOTATION = 'identity.selfsame.io/accept-new-layout';
/** On VMs that have been started: namespace, name and uid (api/virtual-machine-identity/restored-vm.ts). */
export const STARTED_ANNOTATION = 'identity.selfsame.io/started';

/** On migrations: gone only when it is decided, and done, where the guest and its state are. */
export const MIGRATION_FINALIZER = 'kubevirt.io/migrationJobFinalize';
/** On the launcher pods of both sides, while it is not decided: what they say of the guest must be heard. */
export const MIGRATION_POD_FINALIZER = 'selfsame.io/migration';
/** On migrations: the name of their instance, where that is no longer than a label may be. */
export const VMI_NAME_LABEL = 'kubevirt.io/vmi-name';
/** On launcher pods that a guest comes to: the uid of the migration; it stays. On state claims made for one: its name. */
export const MIGRATION_UID_LABEL = 'kubevirt.io/migrationJobUID';
export const MIGRATION_NAME_LABEL = 'kubevirt.io/migrationName';
/** On migrations that empty a node: its name. */
export const EVACUATION_ANNOTATION = 'kubevirt.io/evacuationMigration';
/** In the status of launcher pods on both sides: True once the guest belongs to the target, whatever happens. */
export const MIGRATION_COMMITTED_CONDITION = 'selfsame.io/MigrationCommitted';
/** The reason of a launcher pod whose guest has gone to another node, and of one to which none came. */
export const MIGRATED_REASON = 'Migrated';
/** Of a pod whose guest runs and does not serve: the kubelet's word where a readiness probe fails. */
export const UNREADY_REASON = 'ContainersNotReady';
export const MIGRATION_ABORTED_REASON = 'MigrationAborted';
/** On PersistentVolumes of ours, while a guest moves: the node that may hold a second copy. */
export const INCOMING_NODE_ANNOTATION = 'selfsame.io/incoming-node';
/** Beside it: the uid of the migration, for the spec of an instance may change on the way. */
export const INCOMING_MIGRATION_ANNOTATION = 'selfsame.io/incoming-migration';
/** On PersistentVolumes of ours: a node that still has a copy that counts no more. It removes the copy, then this. */
export const LEFTOVER_NODE_ANNOTATION = 'selfsame.io/leftover-node';

/** On migrations, in their status: no node can say where the guest is. People can, by the annotation. */
export const MANUAL_RECOVERY_CONDITION = 'ManualRecoveryRequired';
/** `source` or `target` (migration-recovery.ts). */
export const RECOVERY_ANNOTATION = 'selfsame.io/recovery';
