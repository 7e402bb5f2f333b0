#!/bin/sh
# Write a backup, with documents if PLANKEEPER_DOCUMENTS_URL is set, delete the ones older than KEEP_DAYS, and record the
# time for Prometheus.
# plankeeper-backup.service runs this every night. Copy the newest file to another machine, and test a restore.
set -eu
folder=${BACKUP_FOLDER:-/var/backups/plankeeper}
metrics=${METRICS_FILE:-/var/lib/prometheus/node-exporter/plankeeper_backup.prom}

file=$folder/plankeeper-$(date -u +%Y-%m-%dT%H%M%SZ).dump
plankeeper backup ${PLANKEEPER_DOCUMENTS_URL:+--documents "$folder/documents"} "$file"
find "$folder" -name 'plankeeper-*.dump' -mtime +"${KEEP_DAYS:-14}" -delete

if [ -d "$(dirname "$metrics")" ]; then
    cat > "$metrics.new" <<METRICS
# HELP plankeeper_backup_last_success_timestamp_seconds When the last backup was complete.
# TYPE plankeeper_backup_last_success_timestamp_seconds gauge
plankeeper_backup_last_success_timestamp_seconds $(date +%s)
# HELP plankeeper_backup_size_bytes The size of the last backup.
# TYPE plankeeper_backup_size_bytes gauge
plankeeper_backup_size_bytes $(wc -c < "$file")
METRICS
    chmod 644 "$metrics.new"
    mv "$metrics.new" "$metrics"
fi
