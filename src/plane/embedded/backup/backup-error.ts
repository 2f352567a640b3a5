/** The message completes "Cannot restore FILE:" or "Cannot back up DIR:". */
export class BackupError extends Error {
  override name = 'BackupError';
}
