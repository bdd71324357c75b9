"""Alembic runs this before the revisions: they use the connection and the transaction of `upgrade`."""

from alembic import context

from retrieval.catalogue.schema import Base

context.configure(connection=context.config.attributes["connection"], target_metadata=Base.metadata)
context.run_migrations()
