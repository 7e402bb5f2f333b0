#!/bin/sh
# Create Plankeeper's database and its two roles, when the volume of the database is empty.
set -eu
psql --set=ON_ERROR_STOP=1 --username="${POSTGRES_USER:-postgres}" --dbname="${POSTGRES_DB:-postgres}" \
    --set=owner_password="$OWNER_PASSWORD" --set=password="$PLANKEEPER_PASSWORD" <<'SQL'
create role plankeeper_owner login password :'owner_password';
create role plankeeper login password :'password';
create database plankeeper owner plankeeper_owner encoding 'UTF8' template template0;
SQL
