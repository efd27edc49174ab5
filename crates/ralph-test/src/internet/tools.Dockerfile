# What people use to get packages and pages, and what an agent might try to get out with.
FROM ralph-base:bookworm
RUN apt-get update \
 && apt-get install -y --no-install-recommends cargo-web curl iproute2 iptables iputils-ping nodejs npm openssl python3-pip wget \
 && rm -rf /var/lib/apt/lists/*
