"""/v1/jobs: what became of a send."""

from litestar import Router, delete, get, post

from tocsin.faces.http.given import PROJECT_KEY, Given, PathId, Project, id_of
from tocsin.service import jobs


@get("/{job_id:str}")
async def read_job(app: Given, who: Project, job_id: PathId) -> jobs.JobView:
    """One job: its state, its attempts and what the provider said."""
    return await jobs.get(app, who, id_of(job_id, "job_not_found", "Job"))


@delete("/{job_id:str}", status_code=200)
async def cancel_job(app: Given, who: Project, job_id: PathId) -> jobs.Cancelled:
    """Cancel a job that has not been sent."""
    return await jobs.cancel(app, who, id_of(job_id, "job_not_found", "Job"))


@post("/{job_id:str}/retry", status_code=200)
async def retry_job(app: Given, who: Project, job_id: PathId) -> jobs.Retried:
    """Try a failed or cancelled job again."""
    return await jobs.retry(app, who, id_of(job_id, "job_not_found", "Job"))


router = Router(
    "/v1/jobs",
    route_handlers=[read_job, cancel_job, retry_job],
    security=PROJECT_KEY,
    tags=["Jobs"],
)
