#!/bin/bash
# A Slurm of one node with two slots on this machine, for benchmarks/slurm/try.py: munge, slurmctld, slurmd.
#     apt-get install -y slurm-wlm munge && bash benchmarks/slurm/one_node.sh start FOLDER
#     bash benchmarks/slurm/one_node.sh stop FOLDER
# Needs root. Nothing outside FOLDER is written but munge's key, if there is none, and its socket in /run/munge.
set -e
what=$1 folder=$(realpath -m "$2")
export SLURM_CONF=$folder/slurm.conf

if [ "$what" = stop ]; then
    for name in slurmd slurmctld munged; do
        [ -s "$folder/$name.pid" ] && kill "$(cat "$folder/$name.pid")" 2>/dev/null || true
    done
    exit 0
fi

mkdir -p "$folder/state" "$folder/spool" /run/munge
[ -e /etc/munge/munge.key ] || { mkdir -p /etc/munge; dd if=/dev/urandom of=/etc/munge/munge.key bs=1024 count=1 status=none; }
chown -R munge: /etc/munge /run/munge /var/log/munge /var/lib/munge 2>/dev/null || true
chmod 400 /etc/munge/munge.key
chmod 755 /run/munge
if [ ! -S /run/munge/munge.socket.2 ]; then
    touch "$folder/munged.pid"; chown munge: "$folder" "$folder/munged.pid"
    runuser -u munge -- /usr/sbin/munged --pid-file="$folder/munged.pid" --log-file=/var/log/munge/munged.log
fi
host=$(hostname -s)
cat > "$SLURM_CONF" <<CONF
ClusterName=symenum
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
SlurmctldPort=16817
SlurmdPort=16818
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait=10
MpiDefault=none
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 Boards=1 SocketsPerBoard=1 CoresPerSocket=2 ThreadsPerCore=1 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP OverTimeLimit=0
CONF
/usr/sbin/slurmctld
/usr/sbin/slurmd
for _ in $(seq 50); do
    sinfo -h -o %t 2>/dev/null | grep -q -E "idle|mix|alloc" && exit 0
    sleep 0.2
done
echo "Slurm did not come up; see $folder/*.log" >&2
exit 1
